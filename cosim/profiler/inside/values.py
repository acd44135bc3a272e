"""Values of tensors that have none: what ``.item()`` and the like say, and what is never written to disk.

A number that is known (see ``host``) is given as it is; else a float is 1.0, an integer 0 and a truth False,
but True for all(), isfinite(), equal() and the like, and the profile says at which line. Whatever
depends on other values (a loss scale that shrinks, an early stop) goes as if training went well.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import torch
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensor, FakeTensorMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import _disable_current_modes

from cosim.profiler.inside import host, lines
from cosim.profiler.inside.routing import TokenRouting

_TRUE = frozenset({"all", "isfinite", "is_same_size", "_has_same_storage_numel"})


known = host.values_of


def stand_in(dtype: torch.dtype) -> Any:
    """A number where there is none."""
    if dtype is torch.bool:
        return False
    return 1.0 if dtype.is_floating_point else 1 + 0j if dtype.is_complex else 0


def constant(mode: FakeTensorMode, values: list[int], device: torch.device, dtype: torch.dtype) -> Any:
    """A fake tensor whose values are known."""
    with no_dispatch():
        real = torch.tensor(values, dtype=dtype)
    return host.carry(mode, real, device)


def note(assume: Any, found: Any) -> None:
    """Say that a number isn't known, where the script asks for it."""
    assume(f"{lines.current()}: the value of a tensor isn't known; it reads as {found}")


def install(assume: Any, host_reads: Any, routing: TokenRouting) -> None:
    """Make reads of values go on. ``assume(text)`` notes what was assumed, ``host_reads(tensor)`` a wait."""
    table: Any = fake_impls.op_implementations_dict
    _read_scalars(table, assume, routing)
    _count_evenly(table, routing)
    _take_all_places(table, assume)
    _draw_in_place(table)
    _patch_reads(assume, host_reads, routing)
    _patch_data()
    _random_states()
    _checkpoints(assume)


def _read_scalars(table: Any, assume: Any, routing: TokenRouting) -> None:
    """``item()`` and ``equal()`` give what is known, or a stand-in."""

    def scalar(fake_mode: Any, func: Any, arg: Any) -> Any:
        real = known(arg)
        if real is not None:
            with no_dispatch():
                found = real.item()
            routing.read(real, found)
            return found
        found = True if getattr(arg, "_cosim_true", False) else stand_in(arg.dtype)
        note(assume, found)
        return found

    def equal(fake_mode: Any, func: Any, one: Any, other: Any) -> bool:
        if one.shape != other.shape:
            return False
        assume(f"{lines.current()}: whether two tensors are equal isn't known; they are taken to be")
        return True

    table[torch.ops.aten._local_scalar_dense.default] = scalar
    table[torch.ops.aten.equal.default] = equal


def _count_evenly(table: Any, routing: TokenRouting) -> None:
    """Counts of numbers that aren't known are those of the routing."""

    def balanced(fake_mode: Any, numbers: int, bins: int, like: Any, dtype: torch.dtype) -> Any:
        return constant(fake_mode, routing.counted(numbers, bins), like.fake_device, dtype)

    def bincount(fake_mode: Any, func: Any, x: Any, weights: Any = None, minlength: int = 0) -> Any:
        if minlength == 0:
            raise NotImplementedError("bincount without minlength: its length depends on values")
        return balanced(fake_mode, x.numel(), minlength, x, torch.int64)

    def histc(fake_mode: Any, func: Any, x: Any, bins: int = 100, *_: Any, **__: Any) -> Any:
        return balanced(fake_mode, x.numel(), bins, x, x.dtype)

    table[torch.ops.aten.bincount.default] = bincount
    table[torch.ops.aten.histc.default] = histc


def _take_all_places(table: Any, assume: Any) -> None:
    """What depends on which places of a mask are set takes all of them, so that sizes are known."""

    def nonzero(fake_mode: Any, func: Any, mask: Any) -> Any:
        values = known(mask)
        if values is not None:
            with no_dispatch():
                places = values.nonzero()
            return host.carry(fake_mode, places, mask.fake_device)
        if mask.numel() > host.MOST_WHOLE_ON_GPU:
            raise DynamicOutputShapeException(func)
        assume(
            f"{lines.current()}: which places of a mask are set isn't known; it is taken to be all of them"
        )
        with no_dispatch():
            places = torch.ones(tuple(mask.shape), dtype=torch.bool).nonzero()
        return host.carry(fake_mode, places, mask.fake_device)

    def masked_select(fake_mode: Any, func: Any, given: Any, mask: Any) -> Any:
        both = torch.broadcast_shapes(given.shape, mask.shape)
        nonzero(fake_mode, func, mask)
        return given.expand(both).reshape(-1).clone()

    table[torch.ops.aten.nonzero.default] = nonzero
    table[torch.ops.aten.masked_select.default] = masked_select


def _draw_in_place(table: Any) -> None:
    """What is drawn from a generator of the script's own; torch's rules know none."""

    def drawn(fake_mode: Any, func: Any, given: Any, *_: Any, **__: Any) -> Any:
        return given

    for name in ("cauchy_", "exponential_", "geometric_", "log_normal_"):
        table[getattr(torch.ops.aten, name).default] = drawn


def _checkpoints(assume: Any) -> None:
    """Nothing is written, and nothing read into tensors that hold nothing."""
    import torch.distributed.checkpoint as dcp

    saved = torch.save

    def written(what: Any = None, *given: Any, **more: Any) -> None:
        if isinstance(what, torch.UntypedStorage | torch.TypedStorage):  # a tensor is pickled
            saved(what, *given, **more)
            return
        assume("checkpoints are not written")

    def written_later(*_: Any, **__: Any) -> Any:
        written()
        done: Future[None] = Future()
        done.set_result(None)
        return done

    torch.save = written
    for module in (dcp, dcp.state_dict_saver, dcp.state_dict_loader):
        for name, value in {
            "save": written,
            "async_save": written_later,
            "load": lambda *_, **__: assume("distributed checkpoints are not loaded"),
        }.items():
            if hasattr(module, name):
                setattr(module, name, value)


def _patch_reads(assume: Any, host_reads: Any, routing: TokenRouting) -> None:
    """Give what a script shows or reads of a tensor: its value where that is known, else a stand-in."""
    old_format, old_tolist, old_numpy = torch.Tensor.__format__, torch.Tensor.tolist, torch.Tensor.numpy

    def show(self: Any, spec: str) -> str:
        if isinstance(self, FakeTensor) and self.dim() == 0:
            return format(self.item(), spec)
        return str(old_format(self, spec)) if not isinstance(self, FakeTensor) else repr(self)

    def tolist(self: Any) -> Any:
        if not isinstance(self, FakeTensor):
            return old_tolist(self)
        host_reads(self)
        real = known(self)
        with no_dispatch():
            if real is not None:
                found = old_tolist(real)
                routing.read(real, found)
                return found
        note(assume, stand_in(self.dtype))
        return np.full(tuple(self.shape), stand_in(self.dtype)).tolist()

    def numpy(self: Any, **given: Any) -> Any:
        if not isinstance(self, FakeTensor):
            return old_numpy(self, **given)
        real = known(self)
        with no_dispatch():
            if real is not None:
                return old_numpy(real)
        note(assume, stand_in(self.dtype))
        kind = np.float64 if self.dtype is torch.bfloat16 else None
        return np.full(tuple(self.shape), stand_in(self.dtype), dtype=kind)

    torch.Tensor.__format__ = show  # type: ignore[method-assign,assignment]
    torch.Tensor.tolist = FakeTensor.tolist = tolist  # type: ignore[method-assign]
    torch.Tensor.numpy = numpy  # type: ignore[method-assign]


def _patch_data() -> None:
    """Let a fake tensor take another's data, and its device with it: FSDP asks for that."""
    plain = torch.Tensor.data

    def set_data(self: Any, value: Any) -> None:
        plain.__set__(self, value)
        if isinstance(self, FakeTensor) and isinstance(value, FakeTensor):
            self.fake_device = value.fake_device

    FakeTensor.data = property(plain.__get__, set_data)  # type: ignore[assignment]

    def set_any(self: Any, value: Any) -> None:
        if not isinstance(value, FakeTensor):
            plain.__set__(self, value)
            return
        made = torch.empty_like(value, requires_grad=self.requires_grad)  # a leaf, which takes all else over
        made.data = value
        if isinstance(self, torch.nn.Parameter):
            made = torch.nn.Parameter(made.detach(), self.requires_grad)
        torch.utils.swap_tensors(self, made)

    torch.Tensor.data = property(plain.__get__, set_any)  # type: ignore[assignment]


class Generator(torch.Generator):
    """``torch.Generator``, on the host whatever device is asked for; unknown states change nothing."""

    def __new__(cls, device: Any = "cpu") -> Any:  # noqa: D102
        made = super().__new__(cls, "cpu")
        made.asked = torch.device(device)
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """As asked for."""
        return self.asked  # type: ignore[attr-defined,no-any-return]

    def clone_state(self) -> Generator:
        """One for the same GPU that draws the same numbers."""
        made = Generator(self.asked)  # type: ignore[attr-defined]
        made.set_state(self.get_state())
        return made

    def set_state(self, state: Any) -> Any:
        """As torch's, if the state is known."""
        return self if isinstance(state, FakeTensor) else super().set_state(state)


def _random_states() -> None:
    plain = torch.set_rng_state

    def set_rng_state(state: Any) -> None:
        if not isinstance(state, FakeTensor):
            plain(state)

    torch.set_rng_state = torch.random.set_rng_state = set_rng_state
    torch.Generator = Generator  # type: ignore[misc]


@contextlib.contextmanager
def real() -> Iterator[None]:
    """Outside all modes: what happens in here happens on the host, with values."""
    with _disable_current_modes():
        yield


def install_loader(assume: Any) -> None:
    """Batches are made on the host, with their values and in this process."""
    from torch.utils.data import DataLoader

    made, start = DataLoader.__init__, DataLoader.__iter__

    @functools.wraps(made)  # Lightning reads its signature, to make another loader of the same settings
    def init(self: Any, *args: Any, **given: Any) -> None:
        if given.get("num_workers"):
            assume("data loader workers are not started; batches are made in the process")
            for key in (
                "num_workers",
                "prefetch_factor",
                "persistent_workers",
                "multiprocessing_context",
                "timeout",
            ):
                given.pop(key, None)
        given.pop("pin_memory", None)
        with real():
            made(self, *args, **given)

    def iterate(self: Any) -> Iterator[Any]:
        with real():
            batches = start(self)
        while True:
            with real():
                try:
                    batch = next(batches)
                except StopIteration:
                    return
            yield batch

    DataLoader.__init__ = init  # type: ignore[method-assign]
    DataLoader.__iter__ = iterate  # type: ignore[method-assign,assignment]
