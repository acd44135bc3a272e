"""The recorder: a dispatch mode that sees every operator of a rank, forward, backward and optimizer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._C import DispatchKey
from torch._prims.rng_prims import graphsafe_run_with_rng_state, run_dtensor_rng_op
from torch.distributed.tensor import DTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from cosim.profiler.inside import fakes, lines, python_operators, serving_kernels
from cosim.profiler.inside.host import KnownValues
from cosim.profiler.inside.kernels import (
    Cost,
    cost,
    higher_order_cost,
    is_unknown,
    memory_of,
    multiplies,
    number_type,
    size_of,
)
from cosim.profiler.inside.shim import Shim
from cosim.profiler.inside.sparse import is_taken_over
from cosim.profiler.ordering import Ordering
from cosim.profiler.trace import HOST_STREAM, Communication, Recorded

MAIN_STREAM = "compute"
_RECORD, _BLOCK, _SYNC_STREAM, _SYNC_EVENT, _SYNC_DEVICE = range(5)
_FREE = frozenset(
    {
        "_unsafe_view",
        "lift_fresh",
        "empty",
        "empty_strided",
        "empty_like",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "set_",
        "_local_scalar_dense",
        "wait_tensor",
        "device",
        "_wrap_tensor",
        "record_stream",
        "is_pinned",
        "_pin_memory",
        "_has_same_storage_numel",
        "equal",
        "_reshape_alias",
        "scalar_tensor",
        "view_of",
    }
)
"""Operators without a kernel, or whose kernel is nothing beside others."""
_TRUE = frozenset({"all", "isfinite"})


@dataclass(frozen=True)
class _Traits:
    """What a schema says of an operator: positions and names of arguments that it changes; only a view? Is it
    one of several others, by its registration or in Python?
    """

    name: str
    positions: tuple[int, ...]
    names: tuple[str, ...]
    free: bool
    composite: bool
    python: Callable[..., Any] | None


@dataclass
class _Capture:
    """How things were when a capture began; ``steps`` of optimizers since."""

    length: int
    backwards: int
    ordering: Ordering
    writers: dict[int, tuple[int, Any]]
    steps: int = 0


_Exchange = tuple[Any, Any, Any, Any]
"""A functional collective: operator, arguments, result."""


def is_collective(func: Any) -> bool:
    """A functional collective, of those that a compiled graph may hold."""
    return getattr(func, "namespace", "") == "_c10d_functional" and func._opname != "wait_tensor"


class DispatchRecorder(TorchDispatchMode):
    """Keeps what is issued, in order."""

    supports_higher_order_operators = True

    def __init__(self, shim: Shim | None, home: torch.device, known: KnownValues) -> None:
        super().__init__()
        self.shim, self.home = shim, home
        self.known = known
        self.ordering = Ordering()
        self.operations: list[Recorded] = []
        self.host_bytes = 0
        self.host_copies = 0
        self.unknown: Counter[str] = Counter()
        self.unordered = 0
        self.noted = 0
        """Events and waits that CUDA was called for since the start."""
        self.groups: Any = None
        self.passing: dict[str, int] = {}
        """What was assumed, and how many operations there were when it was last."""
        self.called: list[tuple[int, str, tuple[int, ...], str]] = []
        """Each communication since the start: number, kind, ranks, line."""
        self.empty: list[tuple[int, str, str]] = []
        """Each matrix product without elements: number, operator, line."""
        self.without_gradients: list[int] = []
        """Kernels that were issued while no gradients were asked for."""
        self.progress: Any = None
        """Told how many operators there are, until the first optimizer step."""
        self.optimizing = 0
        self.stage = ""
        """A request's part: its prefill or a decode step."""
        self.backwards = 0
        self._was_backward = False
        self._traits: dict[Any, _Traits] = {}
        self._carried: set[Any] = set()
        """Operators in Python that were carried out."""
        self.writers: dict[int, tuple[int, Any]] = {}
        """By storage: who wrote it last, and the storage itself, so that its address is not used again."""
        self._lock = threading.RLock()
        self.capture: _Capture | None = None
        """The CUDA graph being captured."""
        self._aside: list[_Exchange] | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """One operator; tensor subclasses (DTensor) are first taken apart by themselves."""
        kwargs = kwargs or {}
        # Operators that take functions (flex attention, checkpoints of compile) have no schema to read.
        if not isinstance(func, torch._ops.OpOverload):
            return self._higher_order(func, args, kwargs)
        if func is torch.ops.prim.device.default:
            tensor = args[0]
            return tensor.fake_device if hasattr(tensor, "fake_device") else func(*args)
        # DDP insists on it, for the map of parameters that were used: here all host memory is pinned.
        if func is torch.ops.aten.is_pinned.default:
            return args[0].device.type == "cpu"
        # DTensor's own dispatch runs on local tensors, and comes back here with them: those are what a rank
        # computes.
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        space = func._schema.name.partition("::")[0]
        if space == "c10d":
            answer = self.groups.intercept(func, args, kwargs)
            if answer is not NotImplemented:
                return answer
        if space == "profiler":  # a label: no tensor is in it
            with no_dispatch():
                return func(*args, **kwargs)
        traits = self._traits.get(func) or self._read_schema(func)
        if traits.composite and torch.is_inference_mode_enabled():  # else autograd has taken it apart
            with self:
                return func.decompose(*args, **kwargs)
        if traits.python is not None:
            return self._in_python(func, traits, args, kwargs)
        if func.is_view:
            viewed = fakes.view(self.known.mode, func, args, kwargs)
            if viewed is not None:
                return viewed
        # The result comes first: cost and order need its shape, and an operator that fails was never issued.
        out = self.known.run(func, args, kwargs)
        if self._aside is not None:
            if is_collective(func):
                self._aside.append((func, args, kwargs, out))
            return out
        if traits.free or is_taken_over(func, args, out):
            if traits.name.startswith("c10d."):
                self.unknown[traits.name] += 1
            elif traits.name.endswith("_local_scalar_dense"):
                self.host_reads(args[0])
            elif traits.name.endswith("wait_tensor"):
                self.wait_for(args[0])
            return out
        if space == "_c10d_functional":
            self.groups.functional(func, args, kwargs, out)
            return out
        self._kernel(func, traits, args, kwargs, out)
        if self.progress is not None:
            gradients = torch.is_grad_enabled() or self.backwards > 0
            self.progress.before_step(len(self.operations), gradients=gradients, answering=bool(self.stage))
        if func._opname in _TRUE and isinstance(out, torch.Tensor):
            out._cosim_true = True  # type: ignore[attr-defined]
        return out

    def _in_python(self, func: Any, traits: _Traits, args: Any, kwargs: Any) -> Any:
        """An operator whose implementation is Python's; as one kernel, once that was seen to fail."""
        assert traits.python is not None
        before = None if func in self._carried else self._mark()
        try:
            with self:
                out = traits.python(*args, **kwargs)
        except Exception:
            if before is None:
                raise
            self._back_to(before)
            self._traits[func] = replace(traits, python=None)
            with self:
                return func(*args, **kwargs)
        self._carried.add(func)
        return out

    # What other parts of the profiler tell it, and ask.

    def is_recording(self) -> bool:
        """Whether what is issued belongs to an iteration: not to a graph or an answer, and not aside."""
        return self.capture is None and self._aside is None and not self.stage

    def take_notes(self) -> None:
        """Take in what CUDA was called for so far."""
        with self._lock:
            self._take_notes()

    def begin_copy(self) -> None:
        """What comes now is added to ``operations`` and ``ordering`` by others."""
        self.take_notes()
        self._phase()

    def writer(self, tensor: torch.Tensor) -> int | None:
        """The operation that wrote a tensor last, in this iteration."""
        return self._writer(tensor)

    @property
    def stream(self) -> str:
        """The stream that this thread issues on."""
        # The shim keeps the current stream a thread, as CUDA does.
        number = 0 if self.shim is None else self.shim.stream()
        return MAIN_STREAM if number == 0 else f"{MAIN_STREAM} {number}"

    def communicate(
        self, what: Communication, inputs: list[torch.Tensor], outputs: list[torch.Tensor], stream: str
    ) -> int:
        """A communication, issued on a stream of its own after all that this thread's stream has so far."""
        with self._lock:
            self._take_notes()
            here = self.stream
            # NCCL's kernel waits for the stream that calls it, and for who wrote what it sends and
            # overwrites.
            after = {*self.ordering.before(here)}
            for tensor in (*inputs, *outputs):
                writer = self._writer(tensor)
                if writer is not None:
                    after.add(writer)
            number = self.ordering.issue(stream, after)
            self.operations.append(Recorded(stream, self._phase(), communication=what))
            self.called.append((number, what.kind, what.ranks, lines.current()))
            for tensor in outputs:
                self._wrote(tensor, number)
            return number

    @contextmanager
    def aside(self) -> Iterator[list[_Exchange]]:
        """In here nothing is recorded, values stay known; the functional collectives that there were."""
        before, self._aside = self._aside, []
        try:
            yield self._aside
        finally:
            self._aside = before

    def launch(
        self, spent: Cost, after: Iterable[int] = (), *, graphed: bool = False, gradients: bool = False
    ) -> int:
        """A kernel on this thread's stream, which also waits for ``after``; ``gradients``: a part of what has
        them, whatever the mode says here.
        """
        with self._lock:
            self._take_notes()
            number = self.ordering.issue(self.stream, after)
            self.operations.append(Recorded(self.stream, self._phase(), kernel=spent, graphed=graphed))
            if not (gradients or torch.is_grad_enabled()):
                self.without_gradients.append(number)
            return number

    def unordered_writers(self, tensors: Iterable[Any]) -> list[int]:
        """Who wrote tensors on other streams, without anything that has this thread's wait for it."""
        found = []
        with self._lock:
            self._take_notes()
            for tensor in tensors:
                writer = self._writer(tensor) if isinstance(tensor, torch.Tensor) else None
                # On another stream, and nothing orders them: a race on a real GPU, or an order that the shim
                # didn't see (counted, and told). Taking it for ordered is what the script means.
                if writer is not None and not self.ordering.covers(self.stream, writer):
                    found.append(writer)
                    self.unordered += 1
        return found

    def wrote(self, tensors: Sequence[torch.Tensor], number: int) -> None:
        """Operation ``number`` wrote tensors."""
        with self._lock:
            for tensor in tensors:
                self._wrote(tensor, number)

    def stream_waits(self, operations: list[int]) -> None:
        """``work.wait()``: this thread's stream waits, the host does not."""
        with self._lock:
            self._take_notes()
            self.ordering.wait(self.stream, operations)

    def begin_capture(self) -> tuple[_Capture, str]:
        """From here on, what is issued is for a CUDA graph; what there was, and the capturing stream."""
        with self._lock:
            self._take_notes()
            # Capturing carries nothing out, but leaves events and writers behind that its replays alone may
            # set.
            self.capture = self._mark()
            return self.capture, self.stream

    def end_capture(self, before: _Capture) -> None:
        """All is as it was: a capture carries nothing out."""
        self._back_to(before)
        self.capture = None

    def wait_for(self, tensor: torch.Tensor) -> None:
        """``wait_tensor``: this thread's stream waits for whoever writes the tensor."""
        writer = self._writer(tensor)
        if writer is not None:
            self.stream_waits([writer])

    def host_reads(self, tensor: torch.Tensor) -> None:
        """``.item()`` and the like: the host waits until the value is there."""
        with self._lock:
            self._take_notes()
            writer = self._writer(tensor)
            if writer is not None:  # a kernel's, wherever its value is known
                self._host_waits([writer])

    # Inside.

    def _mark(self) -> _Capture:
        with self._lock:
            self._take_notes()
            return _Capture(len(self.operations), self.backwards, self.ordering.copy(), dict(self.writers))

    def _back_to(self, before: _Capture) -> None:
        with self._lock:
            self._take_notes()
            del self.operations[before.length :]
            self.ordering, self.writers, self.backwards = before.ordering, before.writers, before.backwards

    def _phase(self) -> str:
        # Autograd's engine is at work on this thread: a backward, or within it the forward of a checkpoint.
        if torch._C._current_graph_task_id() != -1:
            if not self._was_backward:
                self._was_backward = True
                self.backwards += 1
            return "recompute" if torch.is_grad_enabled() and not self.optimizing else "backward"
        self._was_backward = False
        return "optimizer" if self.optimizing else self.stage or "forward"

    def _kernel(self, func: Any, traits: _Traits, args: Any, kwargs: Any, out: Any) -> None:
        inputs = all_tensors((*args, *kwargs.values()))
        results = all_tensors(out if isinstance(out, tuple | list) else (out,))
        here = self.home.type
        on_device = [t for t in (*inputs, *results) if t.device.type == here]
        # Nothing of it is on the GPU: the host's own arithmetic.
        if not on_device:
            return
        # A copy between host and GPU; numbers without dimensions travel with the launch.
        if self.shim is not None and any(t.device.type == "cpu" and t.dim() for t in (*inputs, *results)):
            self.host_copies += 1
            self.host_bytes += sum(size_of(t) for t in results)
            if traits.name.endswith("_to_copy") and results and results[0].device.type == "cpu":
                self.host_reads(on_device[0])
            return
        changed = all_tensors([args[k] for k in traits.positions if k < len(args)])
        written = all_tensors([kwargs.get(n) for n in traits.names])  # `out`: never read
        with self._lock:
            self._take_notes()
            # By storage: a view reads what its base's writer wrote.
            read = {self._storage(t): t for t in inputs}
            fresh = [*(t for t in results if self._storage(t) not in read), *written]
            if written:
                names = traits.names
                inputs = all_tensors((*args, *(v for k, v in kwargs.items() if k not in names)))
            spent = cost(func, traits.name, args, kwargs, out, inputs, changed, fresh)
            if spent.flops == 0 and is_unknown(traits.name):
                self.unknown[traits.name] += 1
            if not spent.flops and multiplies(func):
                self.empty.append((len(self.operations), traits.name, lines.current()))
            number = self.launch(spent, self.unordered_writers(list(read.values())))
            for tensor in (*changed, *fresh):
                self._wrote(tensor, number)

    def _higher_order(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operator that takes functions: flex attention is a kernel; DTensor's random ones, and those that
        draw the same numbers when they are run again, the operator that is given; inside others, nothing is
        seen.
        """
        if func is graphsafe_run_with_rng_state:
            with self:
                return args[0](*args[1:], **{name: kwargs[name] for name in kwargs if name != "rng_state"})
        if func is run_dtensor_rng_op:
            with self:
                return args[2](*args[3:], **kwargs)
        out = func(*args, **kwargs)
        name = f"higher_order.{getattr(func, '_name', func)}"
        spent = higher_order_cost(func, name, args, out)
        if spent is None:
            self.unknown[name] += 1
            return out
        with self._lock:
            self.wrote(all_tensors(out), self.launch(spent))
        return out

    def launched(self, name: str, arguments: list[Any], *, source: str = "triton") -> None:
        """A kernel of Triton's or an extension's: what it reads and writes is hardly ever known, so each
        tensor is moved once.
        """
        if serving_kernels.knows(name):
            self.carried_out(f"{source}.{name}", tuple(arguments), {})
            return
        tensors = [t for t in all_tensors(arguments) if t.device.type == self.home.type]
        # A kernel that is given a tensor twice moves it once.
        moved = sum(size_of(t) for t in {id(t): t for t in tensors}.values())
        first = next((t.dtype for t in tensors if t.is_floating_point()), torch.float32)
        spent = Cost(f"{source}.{name}", "memory", number_type(first), 0, moved, (0, 0, 0, 0))
        self.unknown[spent.name] += 1
        with self._lock:
            self.wrote(tensors, self.launch(spent))

    def carried_out(self, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """An operator of a compiled part that isn't there; what it returns. Which of its tensors it writes is
        not known: what comes after has any of them waits for it.
        """
        arguments = [*given, *named.values()]
        tensors = [t for t in all_tensors(arguments) if t.device.type == self.home.type]
        done = serving_kernels.carried_out(name, arguments, self.assume_now)
        if not tensors:
            return done.returned
        spent = done.cost(name, arguments)
        if not done.known:
            self.unknown[name] += 1
        if done.flops and self.capture is not None:
            self.assume_now("attention in a CUDA graph has the lengths with which it was captured")
        with self._lock:
            number = self.launch(spent, self.unordered_writers(tensors))
            self.wrote(tensors, number)
        return done.returned

    def _writer(self, tensor: torch.Tensor) -> int | None:
        found = self.writers.get(self._storage(tensor))
        return None if found is None else found[0]

    def _wrote(self, tensor: torch.Tensor, number: int) -> None:
        storage = memory_of(tensor)
        # The storage is held: a freed one's address would be the next tensor's, with this writer.
        self.writers[int(storage._cdata)] = number, storage

    def assume_now(self, text: str) -> None:
        """Note something that matters if it happens in the iteration that is kept."""
        self.passing[text] = len(self.operations)

    def iteration_ends(self) -> None:
        """What was written before doesn't matter any more."""
        with self._lock:
            self.writers.clear()

    def _host_waits(self, others: Iterable[int]) -> None:
        """An operation of its own: launches go on after it."""
        found = list(others)
        if found:
            number = self.ordering.issue(HOST_STREAM, found)
            self.operations.append(Recorded(HOST_STREAM, self._phase()))
            self.ordering.host_waits([number])

    def _take_notes(self) -> None:
        if self.shim is None:
            return
        # What CUDA was called for since: events and waits, in the order of the calls, before what is issued
        # now.
        for kind, event, stream in self.shim.notes():
            self.noted += 1
            name = MAIN_STREAM if stream == 0 else f"{MAIN_STREAM} {stream}"
            if kind == _RECORD:
                self.ordering.record(event, name)
            elif kind == _BLOCK:
                self.ordering.block(event, name)
            elif kind == _SYNC_STREAM:
                self._host_waits(self.ordering.before(name))
            elif kind == _SYNC_EVENT:
                self._host_waits(self.ordering.recorded(event))
            elif kind == _SYNC_DEVICE:
                self._host_waits(self.ordering.latest())

    @staticmethod
    def _storage(tensor: torch.Tensor) -> int:
        return int(memory_of(tensor)._cdata)

    def _read_schema(self, func: Any) -> _Traits:
        schema = func._schema
        space, _, short = schema.name.partition("::")
        positions: list[int] = []
        names: list[str] = []
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                if argument.kwarg_only:
                    names.append(argument.name)
                else:
                    positions.append(place)
        view = bool(schema.returns) and all(
            r.alias_info is not None and not r.alias_info.is_write for r in schema.returns
        )
        traits = _Traits(
            f"{space}.{short}",
            tuple(positions),
            tuple(names),
            view or short in _FREE or (not schema.returns and not positions and not names),
            func.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd),
            python_operators.implementation(func),
        )
        self._traits[func] = traits
        return traits


def all_tensors(values: Any) -> list[torch.Tensor]:
    """All of arguments or results, out of lists."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found.extend(all_tensors(value))
    return found
