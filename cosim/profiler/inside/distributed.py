"""Process groups that reach nobody: each collective and message is recorded, and its result has the right
shape.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work
from torch.distributed import distributed_c10d as c10d
from torch.testing._internal.distributed.fake_pg import FakeStore

from cosim.profiler.inside.exchanged import ValueExchange
from cosim.profiler.inside.host import tell
from cosim.profiler.inside.kernels import size_of
from cosim.profiler.inside.recorder import DispatchRecorder
from cosim.profiler.inside.routing import is_routed
from cosim.profiler.inside.shared_folder import SharedFolder
from cosim.profiler.inside.values import known, real
from cosim.profiler.trace import Communication


class Pending(Work):
    """A collective under way: ``wait`` is noted, ``get_future`` is done already (its results are tensors)."""

    def __init__(self, recorder: DispatchRecorder, operations: list[int], results: list[Any]) -> None:
        super().__init__()
        self.recorder, self.operations, self.results = recorder, operations, results

    def wait(self, *_: Any, **__: Any) -> bool:  # noqa: D102
        self.recorder.stream_waits(self.operations)
        return True

    def synchronize(self) -> None:  # noqa: D102
        self.recorder.stream_waits(self.operations)

    def is_completed(self) -> bool:  # noqa: D102
        return True

    def is_success(self) -> bool:  # noqa: D102
        return True

    def result(self) -> Any:  # noqa: D102
        return self.results

    def get_future(self) -> Any:  # noqa: D102
        future: Any = torch.futures.Future()
        future.set_result(self.results)
        return future


_KINDS = {
    "_allgather_base_": "all_gather",
    "allgather_": "all_gather",
    "allgather_coalesced_": "all_gather",
    "allgather_into_tensor_coalesced_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_": "reduce_scatter",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter",
    "alltoall_base_": "all_to_all",
    "alltoall_": "all_to_all",
    "gather_": "all_gather",
    "scatter_": "all_gather",
}
_INPUTS = ("input_tensor", "input_tensors", "inputs", "input_list", "input")
_OUTPUTS = ("output_tensor", "output_tensors", "outputs", "output")
"""What c10d's operators call them."""


_AXES = {
    "TENSOR_MODEL_PARALLEL": "tp",
    "PIPELINE_MODEL_PARALLEL": "pp",
    "CONTEXT_PARALLEL": "cp",
    "DATA_PARALLEL": "dp",
    "EXPERT_MODEL_PARALLEL": "ep",
    "EXPERT_DATA_PARALLEL": "edp",
}
"""What Megatron-LM calls its groups, and the axes that they are."""


class _GroupCall(NamedTuple):
    """What a call of c10d exchanges; ``size`` in bytes, ``peer`` -1 where there is no one other rank."""

    kind: str
    inputs: list[Any]
    outputs: list[Any]
    size: int
    root: int = 0
    peer: int = -1


class ProcessGroups:
    """Turns c10d's operators into communications. ``coalescing`` collects a batch of messages."""

    def __init__(self, recorder: DispatchRecorder, imbalance: float, exchange: ValueExchange) -> None:
        self.recorder = recorder
        self.imbalance = imbalance
        self.exchange = exchange
        self.named: list[dict[str, Any]] = []
        """As the meshes of a session: axes by the names of groups."""
        self.how = ""
        """The reduction of the all-reduce that is being called; the operator itself can't be asked."""
        self.check: Callable[[str], None] = lambda _: None
        """Told a collective's kind before it is recorded; may refuse it."""
        self.kept: list[Any] = []
        self.batch: list[int] | None = None
        self.tags: dict[tuple[int, int], int] = {}

    def describe(self, said: Any, ranks: Any) -> None:
        """A group that a framework has a name for, as Megatron-LM does."""
        name = _AXES.get(str(said).removesuffix("_GROUP"))
        if name is not None and ranks is not None and dist.get_rank() in ranks:
            members = sorted(ranks)
            self.named.append({"names": [name], "shape": [len(members)], "ranks": members})

    def ranks(self, group: Any) -> tuple[int, ...]:
        """Ranks of a process group, in its order."""
        return tuple(dist.get_process_group_ranks(group))

    def intercept(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A call of c10d: recorded, and answered without doing it. NotImplemented where it isn't one."""
        name = func._schema.name
        short = name.partition("::")[2]
        if name.startswith("c10d::"):
            return self._in_place(short, func, args, kwargs)
        return NotImplemented

    def _in_place(self, short: str, func: Any, args: Any, kwargs: Any) -> Any:
        arguments = {a.name: v for a, v in zip(func._schema.arguments, args, strict=False)} | kwargs
        boxed = arguments.get("process_group")
        # c10d also has operators without a group, which are torch's own business.
        if boxed is None:
            return NotImplemented
        group = dist.ProcessGroup.unbox(boxed)
        ranks = self.ranks(group)
        mine = ranks.index(dist.get_rank())
        call = self._described(short, arguments, ranks)
        if call is None:
            return NotImplemented
        number = self._record(
            call.kind, ranks, call.size, call.inputs, call.outputs, root=call.root, peer=call.peer,
            tag=int(arguments.get("tag", 0)), own=mine,
        )  # fmt: skip
        # What an all-to-all brings depends on what others sent: `_route` says what is known of that.
        if call.kind != "all_to_all" and short != "scatter_":
            self.exchange.pass_on(
                call.kind, call.inputs, call.outputs, ranks, root=call.root, peer=call.peer,
                tag=int(arguments.get("tag", 0)), how=self.how,
            )  # fmt: skip
        work = Pending(self.recorder, [] if number is None else [number], call.outputs or call.inputs)
        # The operator returns the C++ half of it: without its Python half, wait() would not come here.
        self.kept.append(work)
        return self._answer(func, arguments, work)

    def _described(self, short: str, arguments: dict[str, Any], ranks: tuple[int, ...]) -> _GroupCall | None:
        """What a call of c10d exchanges; None where it isn't known."""
        tensors = arguments.get("tensors", [])
        if short in ("allreduce_", "allreduce_coalesced_"):
            return _GroupCall("all_reduce", tensors, tensors, _total(tensors))
        if short == "broadcast_":
            root = int(arguments.get("root_rank", 0))
            return _GroupCall("broadcast", tensors, tensors, _total(tensors), root=root)
        if short == "reduce_":
            self.recorder.assume_now("a reduce to one rank is taken for an all-reduce")
            return _GroupCall("all_reduce", tensors, tensors, _total(tensors))
        if short in ("send", "recv_", "recv_any_source_"):
            peer = ranks[int(arguments.get("dst", arguments.get("src", 0)))]
            if short == "send":
                return _GroupCall("send", tensors, [], _total(tensors), peer=peer)
            return _GroupCall("recv", [], tensors, _total(tensors), peer=peer)
        if short in ("barrier", "monitored_barrier_"):
            return _GroupCall("barrier", [], [], 0)
        kind = _KINDS.get(short)
        return None if kind is None else self._between_all(short, kind, arguments, ranks)

    def _between_all(
        self, short: str, kind: str, arguments: dict[str, Any], ranks: tuple[int, ...]
    ) -> _GroupCall:
        """A collective whose inputs and outputs are tensors of their own."""
        inputs, outputs = (
            _flat(next((arguments[name] for name in names if arguments.get(name) is not None), None))
            for names in (_INPUTS, _OUTPUTS)
        )
        size = _total(inputs)
        if kind == "all_to_all":
            self._route(inputs, outputs, ranks)
            size = max(size, _total(outputs))
        elif short in ("gather_", "scatter_"):
            said = f"a {short.rstrip('_')} is taken for an all-gather of what each rank gives"
            self.recorder.assume_now(said)
            size = min(size or _total(outputs), _total(outputs) or size)
        return _GroupCall(kind, inputs, outputs, size)

    def _record(
        self, kind: str, ranks: tuple[int, ...], size: int, inputs: Any, outputs: Any, *, root: int = 0,
        peer: int = -1, tag: int = 0, own: int = 0,
    ) -> int | None:  # fmt: skip
        # NCCL launches nothing for a group of one.
        if len(ranks) < 2:
            return None
        self.check(kind)
        inputs = [t for t in inputs if isinstance(t, torch.Tensor)]
        what = Communication(kind, ranks, size, root=root, peer=peer, tag=tag)
        if (
            not any(t.device.type == self.recorder.home.type for t in (*inputs, *outputs))
            and kind != "barrier"
        ):
            self.recorder.assume_now(f"{kind} of tensors on the host is not counted")
            return None
        stream = f"{kind}:{own}-{peer}" if peer >= 0 else "group:" + _name(ranks)
        if kind == "recv":
            # A receive that nobody has sent for yet holds up nothing: each is on a stream of its own.
            stream = f"recv:{len(self.recorder.operations)}"
        number = self.recorder.communicate(what, inputs, list(outputs), stream)
        if self.batch is not None:
            self.batch.append(number)
        return number

    def _route(self, inputs: list[Any], outputs: list[Any], ranks: tuple[int, ...]) -> None:
        """Counts that are exchanged stay known. Each rank sends what this one does: from each comes what this
        one would send to itself; of a router's tokens, as much as is sent, so that this rank is the mean one.
        """
        counts = known(inputs[0]) if len(inputs) == len(outputs) == 1 else None
        if counts is None:
            return
        if not isinstance(outputs[0], torch._subclasses.FakeTensor) or inputs[0].shape != outputs[0].shape:
            return
        with torch.utils._mode_utils.no_dispatch():
            if is_routed(counts) or counts.numel() % len(ranks):
                scaled = counts.clone()
            else:
                own = counts.reshape(len(ranks), -1)[ranks.index(dist.get_rank())]
                scaled = own.repeat(len(ranks)).reshape(counts.shape)
            if self.imbalance != 1.0:
                scaled = torch.ceil(counts.to(torch.float64) * self.imbalance).to(counts.dtype)
        tell(self.exchange.mode, outputs[0], scaled)

    def _is_shift(self, splits: Any, ranks: tuple[int, ...]) -> bool:
        """Everything goes to one other rank: a permutation, not an exchange of all with all."""
        try:
            to = [place for place, count in enumerate(splits or ()) if int(count)]
        except TypeError:
            return False
        # Context parallelism passes keys on around a ring as an all-to-all in which all but one split are
        # empty.
        if len(to) != 1 or len(ranks) < 2:
            return False
        own = ranks.index(dist.get_rank())
        if to[0] != (own + 1) % len(ranks):
            self.recorder.assume_now("a permutation of ranks is taken for a shift to the next rank")
        return True

    def _answer(self, func: Any, arguments: dict[str, Any], work: Work) -> Any:
        returns = func._schema.returns
        if len(returns) < 2:
            return work.boxed() if returns else None
        by_shape = {
            "allreduce_": "tensors", "broadcast_": "tensors", "_allgather_base_": "output_tensor",
            "_reduce_scatter_base_": "output_tensor", "allgather_": "output_tensors",
            "reduce_scatter_": "output_tensors", "alltoall_": "output_tensors", "scatter_": "output_tensors",
        }  # fmt: skip
        return arguments[by_shape[func._schema.name.partition("::")[2]]], work.boxed()

    def functional(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """A functional collective that was just traced; its result is pending until ``wait_tensor``."""
        short = func._schema.name.partition("::")[2]
        arguments = {a.name: v for a, v in zip(func._schema.arguments, args, strict=False)} | kwargs
        group = c10d._resolve_process_group(arguments["group_name"])
        ranks = self.ranks(group)
        given = arguments.get("input", arguments.get("inputs"))
        inputs = given if isinstance(given, list | tuple) else [given]
        outputs = out if isinstance(out, list | tuple) else [out]
        kinds = {
            "all_reduce": "all_reduce", "all_reduce_": "all_reduce", "all_reduce_coalesced": "all_reduce",
            "all_gather_into_tensor": "all_gather", "all_gather_into_tensor_out": "all_gather",
            "all_gather_into_tensor_coalesced": "all_gather", "reduce_scatter_tensor": "reduce_scatter",
            "reduce_scatter_tensor_coalesced": "reduce_scatter", "all_to_all_single": "all_to_all",
            "broadcast": "broadcast", "broadcast_": "broadcast",
        }  # fmt: skip
        kind = kinds.get(short)
        if kind is None:
            self.recorder.unknown[f"_c10d_functional.{short}"] += 1
            return
        size = _total(inputs)
        if kind == "all_to_all":
            self._route(list(inputs), list(outputs), ranks)
            size = max(size, _total(outputs))
            if self._is_shift(arguments.get("input_split_sizes"), ranks):
                kind = "shift"  # each rank to the next of the group, as a ring does it
        root = int(arguments.get("src", 0))
        self._record(kind, ranks, size, inputs, outputs, root=root)
        if kind not in ("all_to_all", "shift"):
            how = str(arguments.get("reduce_op", "")).lower()
            self.exchange.pass_on(kind, list(inputs), list(outputs), ranks, root=root, how=how)


def _name(ranks: tuple[int, ...]) -> str:
    step = ranks[1] - ranks[0]
    return f"{ranks[0]}+{step}x{len(ranks)}"


def _flat(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for each in value or () for t in _flat(each)]


def _total(tensors: Any) -> int:
    return sum(size_of(t) for t in _flat(tensors))


def _reductions(groups: ProcessGroups) -> None:
    """An all-reduce says how it reduces."""
    plain = c10d.all_reduce

    @functools.wraps(plain)
    def all_reduce(
        tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        groups.how = str(op).rpartition(".")[2].lower()
        try:
            return plain(tensor, op, group, async_op)
        finally:
            groups.how = ""

    everywhere(plain, all_reduce)


def install(rank: int, world_size: int, per_node: int, folder: SharedFolder, groups: ProcessGroups) -> None:
    """Torchrun's environment and fake process groups; ``folder``: files that ranks leave for each other."""
    _torchrun_environment(rank, world_size, per_node)
    original = c10d.init_process_group
    own_rank, ranks = rank, world_size

    @functools.wraps(original)
    def init_process_group(
        backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1,
        rank: int = -1, *_: Any, **__: Any,
    ) -> None:  # fmt: skip
        for what, given, own in (("world_size", world_size, ranks), ("rank", rank, own_rank)):
            if given not in (-1, own):
                raise RuntimeError(
                    f"init_process_group is called with {what}={given}, but this is rank {own_rank} of"
                    f" {ranks}: profile with the --world-size that the script makes for itself, or let it"
                    " read torchrun's RANK and WORLD_SIZE"
                )
        # Scripts and frameworks both call it: the second time is for nothing, where torch itself would fail.
        if not dist.is_initialized():
            with real():
                original("fake", rank=own_rank, world_size=ranks, store=FakeStore())

    _reductions(groups)
    new_group = c10d.new_group

    @functools.wraps(new_group)
    def fake_group(ranks: Any = None, *_: Any, **given: Any) -> Any:
        with real():
            made = new_group(ranks, backend="fake", group_desc=given.get("group_desc"))
        groups.describe(given.get("group_desc"), ranks)
        return made

    everywhere(original, init_process_group)
    everywhere(new_group, fake_group)
    _objects(folder)
    for quiet in ("set_timeout", "monitored_barrier"):  # newer scripts know names that this torch hasn't
        setattr(dist, quiet, lambda *_, **__: None)
    # torch's own module goes by its own, as it would look for NCCL's classes otherwise.
    dist.is_nccl_available = lambda: True
    _meshes()


def _torchrun_environment(rank: int, world_size: int, per_node: int) -> None:
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world_size),
        LOCAL_RANK=str(rank % per_node),
        LOCAL_WORLD_SIZE=str(min(per_node, world_size)),
        GROUP_RANK=str(rank // per_node),
        GROUP_WORLD_SIZE=str(-(-world_size // per_node)),
        ROLE_RANK=str(rank),
        ROLE_NAME="default",
        ROLE_WORLD_SIZE=str(world_size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
        TORCHELASTIC_RUN_ID="cosim",
        TORCHELASTIC_RESTART_COUNT="0",
        TORCHELASTIC_MAX_RESTARTS="0",
        OMP_NUM_THREADS="1",
    )


def _objects(folder: SharedFolder) -> None:
    """Python objects exchanged between ranks: every other rank is taken to say the same.

    What a rank broadcasts is put into ``folder``, under the group's shape: ranks that are profiled after it,
    of that group or of another of its shape, find it there.
    """
    sent: Counter[tuple[int, ...]] = Counter()

    def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
        object_list[:] = [obj] * len(object_list)

    def gather_object(obj: Any, object_gather_list: Any = None, *_: Any, **__: Any) -> None:
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def scatter_object_list(
        scatter_object_output_list: list[Any], scatter_object_input_list: Any = None, *_: Any, **__: Any
    ) -> None:
        if scatter_object_input_list:
            scatter_object_output_list[0] = scatter_object_input_list[0]

    def broadcast_object_list(
        object_list: list[Any], src: Any = None, group: Any = None, device: Any = None, group_src: Any = None
    ) -> None:
        members = tuple(dist.get_process_group_ranks(group or dist.group.WORLD))
        source = members[group_src or 0] if src is None else src
        place = members.index(source), members[-1] - members[0], len(members)
        sent[place] += 1
        name = f"objects-{'-'.join(map(str, place))}-{sent[place]}"
        with contextlib.suppress(Exception):  # what can't be pickled, a cluster couldn't send either
            if source == folder.rank:
                folder.put(name, object_list)
            else:
                object_list[:] = folder.get(name, source) or object_list

    for name, new in (
        ("all_gather_object", all_gather_object),
        ("gather_object", gather_object),
        ("broadcast_object_list", broadcast_object_list),
        ("scatter_object_list", scatter_object_list),
    ):
        everywhere(getattr(c10d, name), new)


def _meshes() -> None:
    """A mesh looks its ranks up by value: it is made outside the modes."""
    from torch.distributed import device_mesh

    cls = device_mesh.DeviceMesh
    for name in ("__init__", "__getitem__", "_flatten", "_unflatten", "_concatenate", "_get_all_submeshes",
                 "_split", "_rearrange"):  # fmt: skip
        method = getattr(cls, name, None)
        if method is not None:
            setattr(cls, name, _outside(method))
    everywhere(device_mesh.init_device_mesh, _outside(device_mesh.init_device_mesh))
    # DTensor asks what shape a result has by running the operator, at the shape of all ranks: not the rank's.
    from torch.distributed.tensor._sharding_prop import ShardingPropagator as Shapes

    Shapes._propagate_tensor_meta_non_cached = _outside(Shapes._propagate_tensor_meta_non_cached)
    Shapes.propagate_op_sharding_non_cached = _of_unlike(Shapes.propagate_op_sharding_non_cached)


def _of_unlike(propagate: Any) -> Any:
    """How an operator of lists shards what it gives, asked for one of each kind of its elements: DTensor goes
    through all, in milliseconds each.
    """
    from torch.distributed.tensor._dtensor_spec import DTensorSpec
    from torch.distributed.tensor._op_schema import OpSchema

    def is_list(value: Any) -> bool:
        return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], DTensorSpec)

    @functools.wraps(propagate)
    def call(self: Any, schema: Any) -> Any:
        given = schema.args_schema
        length = next((len(each) for each in given if is_list(each)), 0)
        if length < 2 or not schema.op.name().startswith("aten::_foreach_"):
            return propagate(self, schema)
        columns = [
            k for k, each in enumerate(given) if isinstance(each, list | tuple) and len(each) == length
        ]
        kinds: dict[Any, int] = {}
        try:
            places = [
                kinds.setdefault(row, len(kinds)) for row in zip(*(given[k] for k in columns), strict=True)
            ]
        except TypeError:  # sizes that are no numbers can't be told apart
            return propagate(self, schema)
        rows = list(zip(*kinds, strict=True))

        def one_of_each(k: int, each: Any) -> Any:
            return type(each)(rows[columns.index(k)]) if k in columns else each

        def all_of(each: Any, k: int | None = None) -> Any:
            return type(each)(each[place] for place in places) if k is None or k in columns else each

        short = OpSchema(
            schema.op,
            tuple(one_of_each(k, each) for k, each in enumerate(given)),
            schema.kwargs_schema,
            schema.schema_info,
        )
        found = propagate(self, short)
        wanted = found.redistribute_schema
        if isinstance(found.output_spec, list | tuple):
            found.output_spec = all_of(found.output_spec)
        if wanted is not None:
            args = tuple(all_of(each, k) for k, each in enumerate(wanted.args_schema))
            found.redistribute_schema = OpSchema(wanted.op, args, wanted.kwargs_schema, wanted.schema_info)
        return found

    return call


def _outside(method: Any) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **given: Any) -> Any:
        with real():
            return method(*args, **given)

    return call


def everywhere(old: Any, new: Any) -> None:
    """Replace a function under every name that a loaded module has for it."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict):
            continue
        for key, value in list(names.items()):
            if value is old:
                names[key] = new
