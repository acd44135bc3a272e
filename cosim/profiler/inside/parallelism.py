"""Another data parallelism than the script's own: PyTorch's classes exchanged where the script makes them.

====================  ===========================  ================================================
asked for             a script's DDP becomes       a script's ``fully_shard`` becomes
====================  ===========================  ================================================
``ddp``               what it is                   DDP of the outermost module
``zero1``             DDP, and the optimizer a     the same, and the optimizer a
                      ``ZeroRedundancyOptimizer``  ``ZeroRedundancyOptimizer``
``zero2``             ``fully_shard`` of units,    the same without resharding after forward
                      without resharding
``zero3``             ``fully_shard`` of units     the same with resharding
``hsdp``              ``zero3`` within a host,     ``zero3`` within a host, all-reduces between
                      all-reduces between hosts
====================  ===========================  ================================================

PyTorch itself then issues the collectives, by its own rules of buckets and units. Units are those of its
tutorial: the blocks of a model, then the whole.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from cosim.profiler.inside import lines
from cosim.profiler.inside.distributed import everywhere

_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)
_SHARDED = ("zero2", "zero3", "hsdp")


class ExchangedParallelism:
    """Puts ``kind`` in place of what the script does; ``per_node``: ranks of a host; ``assume`` notes it."""

    def __init__(self, kind: str, per_node: int, assume: Callable[[str], None]) -> None:
        self.kind, self.per_node, self.assume = kind, per_node, assume
        self.exchanged = self.wrapped = False
        self.hosts: Any = None
        self.replicated: set[nn.Module] = set()
        self.optimizers: list[torch.optim.Optimizer] = []

    def install(self) -> None:
        """Patch the classes that the script will make."""
        from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

        self.fully_shard = fully_shard

        def refused(*_: Any, **__: Any) -> Any:
            raise self._refusal("FullyShardedDataParallel (FSDP1)", "use fully_shard, or DDP")

        FullyShardedDataParallel.__init__ = refused  # type: ignore[method-assign]
        everywhere(fully_shard, self._sharded_by_script())
        ddp: Any = nn.parallel.DistributedDataParallel
        ddp.__new__ = self._data_parallel
        optimizer: Any = torch.optim.Optimizer
        optimizer.__new__ = self._optimizer

    def missing(self) -> str:
        """Why nothing was exchanged, where nothing was."""
        if self.exchanged:
            return ""
        return (
            f"the script wraps no model in DDP or fully_shard: there is nothing to exchange for {self.kind}"
        )

    def check_collective(self, kind: str) -> None:
        """Refuse a collective that the script's own lines issue while modules that were wrapped compute.

        Raises
        ------
        RuntimeError
            Names the line.
        """
        if not self.wrapped:
            return
        callers = _callers(sys._getframe(1))
        own = next((one for one in callers if _is_scripts(one) or _computes(one)), None)
        if own is None or not _is_scripts(own):  # PyTorch's own: of a hook, a layer, the autograd engine
            return
        backward = torch._C._current_graph_task_id() != -1
        if backward or _computes(own) or any(_computes(one) for one in callers):
            raise RuntimeError(
                f"{lines.current(own)}: a module's own {kind} can't be kept under {self.kind}, which shards"
                " all parameters alike: profile the script as it is"
            )

    def _refusal(self, what: str, instead: str) -> RuntimeError:
        return RuntimeError(f"{lines.current()}: {what} can't be exchanged for {self.kind}: {instead}")

    def _data_parallel(self, cls: Any, module: Any = None, *_: Any, **given: Any) -> Any:
        self.exchanged = True
        if self.kind not in _SHARDED:
            return object.__new__(cls)
        if given.get("mixed_precision") is not None:
            raise self._refusal("DDP's mixed_precision", "use autocast")
        self.wrapped = True
        group = given.get("process_group")
        if group is None and given.get("device_mesh") is not None:
            group = given["device_mesh"].get_group()
        mesh = self._mesh(group)
        found = list(units(module))
        before = dict(module.named_parameters(remove_duplicate=False))
        for unit in (*found, module):
            own = {} if unit is module else {"reshard_after_forward": self.kind != "zero2"}
            self.fully_shard(unit, mesh=mesh, **own)
        self._hand_over(before, module)
        counts = Counter(type(unit).__name__.removeprefix("FSDP") for unit in found)
        said = [*(f"{times} {name}" for name, times in counts.items()), "the rest" if found else "the whole"]
        self.assume(f"{lines.current()}: {self.kind} in place of DDP: fully_shard of {' and '.join(said)}")
        return _answering_as_ddp(module)

    def _mesh(self, group: Any = None) -> Any:
        """The mesh of a group, or of all ranks; of ``hsdp`` hosts x ranks of one."""
        from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

        ranks = dist.get_world_size(group)
        if self.kind != "hsdp":
            if group is None:
                return init_device_mesh("cuda", (ranks,), mesh_dim_names=("dp",))
            return DeviceMesh.from_group(group, "cuda", mesh_dim_names=("dp",))
        if ranks != dist.get_world_size() or ranks % self.per_node or ranks == self.per_node:
            raise self._refusal(
                f"data parallelism of {ranks} ranks",
                f"hsdp shards within hosts of {self.per_node} ranks (--per-node), so it takes two whole hosts"
                " or more, and no other parallelism",
            )
        names = ("dp_replicate", "dp_shard")
        return init_device_mesh("cuda", (ranks // self.per_node, self.per_node), mesh_dim_names=names)

    def _hand_over(self, before: dict[str, Any], module: nn.Module) -> None:
        """Optimizers that were made before hold the sharded parameters from now on."""
        after = dict(module.named_parameters(remove_duplicate=False))
        now = {id(one): after[name] for name, one in before.items()}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["params"] = [now.get(id(one), one) for one in group["params"]]

    def _optimizer(self, cls: Any, *given: Any, **named: Any) -> Any:
        """An optimizer that the script makes; for ``zero1`` one that keeps a share of its states."""
        from torch.distributed.optim import ZeroRedundancyOptimizer

        if issubclass(cls, ZeroRedundancyOptimizer) and self.kind in _SHARDED and not _is_made_by_zero():
            raise self._refusal("ZeroRedundancyOptimizer", "sharded parameters' states are shares already")
        plain = self.kind != "zero1" or issubclass(cls, ZeroRedundancyOptimizer) or _is_made_by_zero()
        around = any(isinstance(one, torch.optim.Optimizer) for one in given)  # as accelerate's
        if plain or around:
            made = object.__new__(cls)
            self.optimizers.append(made)
            return made
        bound = inspect.signature(cls.__init__).bind(None, *given, **named)
        _, parameters, *_ = bound.arguments
        told = {k: v for k, v in bound.arguments.items() if k != "self"}
        of = told.pop(parameters)
        for key, parameter in inspect.signature(cls.__init__).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                told |= told.pop(key, {})
        self.assume(f"{lines.current()}: a ZeroRedundancyOptimizer of {cls.__name__} in place of it")
        return ZeroRedundancyOptimizer(of, cls, **told)

    def _sharded_by_script(self) -> Any:
        plain = self.fully_shard

        @functools.wraps(plain)
        def fully_shard(module: Any, *given: Any, **named: Any) -> Any:
            self.exchanged = True
            mesh = named.get("mesh")
            whole = self.kind in ("zero2", "zero3") or mesh is None or mesh.size() == dist.get_world_size()
            if not whole:
                raise self._refusal("fully_shard along a part of a mesh", "zero2 and zero3 can be asked for")
            if self.kind not in _SHARDED:
                return self._replicated(module, **named)
            if self.kind == "hsdp":
                self.hosts = self.hosts or self._mesh()
                named["mesh"] = self.hosts
            if named.get("reshard_after_forward") is not None or self.kind == "zero2":
                named["reshard_after_forward"] = self.kind != "zero2"
            return plain(module, *given, **named)

        return fully_shard

    def _replicated(self, module: Any, mp_policy: Any = None, offload_policy: Any = None, **_: Any) -> Any:
        """DDP in place, of the outermost of the script's units: the first that computes."""
        from torch.distributed._composable.replicate import replicate

        if mp_policy is not None and mp_policy.param_dtype is not None:
            raise self._refusal("fully_shard with a mp_policy", "use autocast")
        if hasattr(offload_policy, "pin_memory"):
            raise self._refusal("fully_shard with CPUOffloadPolicy", "leave it out")

        def begins(own: Any, given: Any, named: Any) -> Any:
            if own in self.replicated:
                return None
            self.replicated.update(own.modules())
            self.assume(
                f"{lines.current()}: {self.kind} in place of fully_shard: DDP of {type(own).__name__}"
            )
            replicate(own)
            own.set_requires_gradient_sync(own.__dict__.pop("_synced", True))
            return replicate.state(own).forward_pre_hook(own, given, named)  # type: ignore[attr-defined]

        module.register_forward_pre_hook(begins, with_kwargs=True, prepend=True)
        return _answering_as_fsdp(module)


def units(module: nn.Module) -> Iterator[nn.Module]:
    """What is gathered at once: outermost entries of lists, dictionaries and sequences of modules that have
    layers of their own with parameters. A list in a list has no forward: its entries are taken.
    """
    for child in module.children():
        whole = isinstance(module, _CONTAINERS) and not isinstance(child, (nn.ModuleList, nn.ModuleDict))
        if whole and any(True for layer in child.children() for _ in layer.parameters()):
            yield child
        else:
            yield from units(child)


def _callers(frame: Any) -> Iterator[Any]:
    """A frame and those that called it, from the inside out."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _computes(frame: Any) -> bool:
    """A module's call, or the autograd engine's."""
    name = frame.f_code.co_filename
    return name.endswith(
        ("torch/nn/modules/module.py", "torch/autograd/graph.py", "torch/autograd/function.py")
    )


def _is_scripts(frame: Any) -> bool:
    """The user's own line or a library's, not PyTorch's or the profiler's."""
    name = frame.f_code.co_filename
    return lines.is_users(name) or (lines.is_library(name) and "torch" not in Path(name).parts)


def _is_made_by_zero() -> bool:
    own = itertools.takewhile(lambda frame: not _is_scripts(frame), _callers(sys._getframe(2)))
    return any(frame.f_code.co_filename.endswith("zero_redundancy_optimizer.py") for frame in own)


def _answering_as_ddp(module: Any) -> Any:
    """The sharded model with what scripts ask of DDP: ``module``, ``no_sync``, a flag that does the same."""

    @contextlib.contextmanager
    def no_sync(self: Any) -> Iterator[None]:
        self.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.set_requires_gradient_sync(True)

    def hook(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"{lines.current()}: fully_shard has no register_comm_hook")

    cls = type(module)
    cls.module = property(lambda self: self)
    cls.no_sync = no_sync
    cls.register_comm_hook = hook
    cls.require_backward_grad_sync = property(fset=lambda self, sums: self.set_requires_gradient_sync(sums))
    return module


def _answering_as_fsdp(module: Any) -> Any:
    """The module with what scripts ask of a sharded one: of all that only gradients' sums mean anything."""
    from torch.distributed.fsdp import FSDPModule

    def nothing(*_: Any, **__: Any) -> None:
        pass

    def sums(self: Any, requires_gradient_sync: bool) -> None:
        self.__dict__["_synced"] = requires_gradient_sync

    cls: Any = type(module)
    for name in vars(FSDPModule):
        if name.startswith(("set_", "unshard", "reshard")):
            setattr(cls, name, sums if name == "set_requires_gradient_sync" else nothing)
    return module
