"""Layers that are alike: three of a row are run and recorded, the others are copies of the second.

Entries of lists, dictionaries and sequences of modules are alike if classes, settings, parameters and what
they are called with are. Copied is what a layer's ``forward`` issues, and what its backward does between its
outputs' gradients and its inputs'. All that is around it runs for each layer: hooks of FSDP and of tensor
parallelism on it, gathers and reductions of its parameters, the optimizer. The iteration before the wanted
one shows a layer's backward. In the wanted one the second and third layer of each row must do the same, and
what was copied; else the script is profiled again, every layer recorded.

Nothing is copied where something may depend on which layer it is: DDP's buckets and hooks on gradients,
graphs that are compiled, events, copies to the host, expert routing, random numbers of the host, attributes
that change.
"""

from __future__ import annotations

import functools
import random
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_flatten, tree_unflatten

from cosim.profiler.inside import fakes
from cosim.profiler.inside.host import values_of
from cosim.profiler.inside.kernels import memory_of
from cosim.profiler.inside.recorder import DispatchRecorder
from cosim.profiler.trace import Recorded

_RUN = 3
"""Layers of a row that are run."""
_CONTAINERS = nn.ModuleList, nn.ModuleDict, nn.Sequential
_EXCHANGES = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "shift"})
_VALUES = (
    int, float, complex, str, bytes, type(None), type, FunctionType, BuiltinFunctionType, torch.dtype,
    torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
_DIFFER = "layers that look alike do not do the same"
_OWN = frozenset(vars(nn.Module()))
_DEPTH = 4
_UNREAD = frozenset({"__init__", "extra_repr", "__repr__", "reset_parameters"})


class _Looks(NamedTuple):
    """All of a tensor but its values; ``spread``: mesh, placements, shape and strides of the whole."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    spread: tuple[Any, ...] = ()


def _looks(tensor: Any) -> _Looks | None:
    """None for a tensor of a kind that can't be made again."""
    if isinstance(tensor, DTensor):
        local = _looks(tensor._local_tensor)
        whole = tensor.device_mesh, tensor.placements, tuple(tensor.shape), tensor.stride()
        return None if local is None else local._replace(spread=whole)
    plain = type(tensor) in (FakeTensor, torch.Tensor) or isinstance(tensor, nn.Parameter)
    if not plain or tensor.layout is not torch.strided:
        return None
    return _Looks(tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)


def _made(mode: FakeTensorMode, looks: _Looks) -> torch.Tensor:
    local = fakes.empty(mode, looks.shape, looks.strides, looks.dtype, looks.device)
    if not looks.spread:
        return local
    mesh, placements, shape, strides = looks.spread
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=strides)


def _here(tensor: torch.Tensor) -> torch.Tensor:
    """A rank's own part."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def _store(tensor: Any) -> int:
    """Whose memory a gradient has; 0 for none."""
    return 0 if tensor is None else int(memory_of(_here(tensor))._cdata)


def _tell_if_shared(layer: _LayerRun | _Copied, inputs: list[torch.Tensor]) -> None:
    """Tell a layer whether somebody else's gradients were added to those that it gave its inputs."""
    handles: dict[int, Any] = {}
    for place, tensor in enumerate(inputs):
        node, output = tensor.grad_fn, tensor.output_nr

        def look(
            given: Any, place: int = place, output: int | None = None if node is None else output
        ) -> None:
            handles.pop(place).remove()  # the tensor may be given again
            gradient = given if output is None else given[output]
            if not layer.given_back or layer.given_back[place] != _store(gradient):
                layer.meets_others()

        handles[place] = tensor.register_hook(look) if node is None else node.register_prehook(look)


def _is_known(tensor: Any) -> bool:
    return values_of(_here(tensor)) is not None


class _Window:
    """What is issued from here to ``close()``, by numbers of its own, so that it can be issued again."""

    def __init__(self, recorder: DispatchRecorder) -> None:
        self.recorder = recorder
        self.stream = recorder.stream
        self.state = self._state()
        self.ordering = recorder.ordering
        self.begin = len(recorder.operations)
        self.before = recorder.ordering.frontier()
        self.lists = len(recorder.called), len(recorder.without_gradients)
        self.unknown_before = recorder.unknown.copy()
        self.rows: list[tuple[Recorded, tuple[int, ...]]] = []
        self.waits: frozenset[int] = frozenset()
        self.called: list[tuple[int, str, tuple[int, ...], str]] = []
        self.without_gradients: list[int] = []
        self.unknown: Counter[str] = Counter()
        self.closed = False

    def _state(self) -> tuple[Any, ...]:
        """What must not change: none of it could be copied."""
        recorder = self.recorder
        recorder.take_notes()
        seen = recorder.known.routing.chosen, recorder.host_copies, recorder.unordered, recorder.noted
        return (*seen, len(recorder.empty), random.getstate(), *_draws())

    def close(self) -> bool:
        """Whether it can be issued again."""
        recorder, begin = self.recorder, self.begin
        self.unknown = recorder.unknown - self.unknown_before
        if (
            self._state() != self.state
            or recorder.ordering is not self.ordering
            or recorder.stream != self.stream
        ):
            return False
        last, waits, host = self.before
        frontier = {last.get(self.stream, -1), *waits.get(self.stream, ())}
        for number in range(begin, len(recorder.operations)):
            operation, deps = recorder.operations[number], self.ordering.deps[number]
            what, stream = operation.communication, operation.stream
            issued_here = stream == self.stream if what is None else what.kind in _EXCHANGES
            if operation.graphed or not issued_here:
                return False
            # Anything else before this that it runs after, a copy might not.
            explained = {last.get(stream, -1), *waits.get(stream, ()), *host}
            if what is not None:
                explained |= frontier
            if not explained.issuperset(d for d in deps if d < begin):
                return False
            self.rows.append((operation, tuple(d - begin for d in deps if d >= begin)))
        pending = self.ordering.frontier()[1].get(self.stream, ())
        self.waits = frozenset(d - begin for d in pending if d >= begin)
        called, without = self.lists
        self.called = [(number - begin, *said) for number, *said in recorder.called[called:]]  # type: ignore[misc]
        self.without_gradients = [number - begin for number in recorder.without_gradients[without:]]
        self.closed = True
        return True

    def place(self, tensor: torch.Tensor) -> int | None:
        """Which of its operations wrote a tensor; None if none of them did."""
        number = self.recorder.writer(_here(tensor))
        return None if number is None or number < self.begin else number - self.begin

    def equals(self, other: _Window) -> bool:
        """The same operations after the same ones."""
        mine, theirs = (
            (w.closed, w.stream, w.rows, w.waits, w.called, w.without_gradients, w.unknown)
            for w in (self, other)
        )
        return mine == theirs

    def again(self) -> int:
        """Issue it; the number of the first operation."""
        recorder = self.recorder
        recorder.begin_copy()
        begin = len(recorder.operations)
        for operation, deps in self.rows:
            after = [begin + d for d in deps]
            if operation.communication is not None:
                after.extend(recorder.ordering.before(self.stream))
            recorder.ordering.issue(operation.stream, after)
            recorder.operations.append(operation)
        recorder.ordering.wait(self.stream, [begin + d for d in self.waits])
        recorder.called.extend((begin + number, *said) for number, *said in self.called)  # type: ignore[misc]
        recorder.without_gradients.extend(begin + number for number in self.without_gradients)
        return begin


def _draws() -> tuple[Any, ...]:
    """Where the generators of NumPy and of torch are."""
    drawn: Any = np.random.get_state()  # noqa: NPY002
    with no_dispatch():
        return bytes(drawn[1]), drawn[2], bytes(torch.default_generator.get_state().numpy())


@dataclass
class _GivenTensor:
    """A tensor that a layer gives: how it looks, which operation of the layer wrote it."""

    looks: _Looks
    place: int
    differentiable: bool = True

    def again(self, recorder: DispatchRecorder, begin: int | None) -> torch.Tensor:
        made = _made(recorder.known.mode, self.looks)
        if begin is not None:
            recorder.wrote([_here(made)], begin + self.place)
        return made


@dataclass
class _LayerRun:
    """A layer that was run: its forward, its backward and what came of them. ``fits``: it can be copied."""

    forward: _Window
    parameters: list[torch.Tensor]
    touched: Callable[[], None]
    """To be called when the node in front of it has made a difference."""
    backward: _Window | None = None
    structure: Any = None
    outputs: list[_GivenTensor | None] = field(default_factory=list)
    output_gradients: list[_Looks | None] = field(default_factory=list)
    input_gradients: list[_GivenTensor | None] = field(default_factory=list)
    gradients: list[_GivenTensor] = field(default_factory=list)
    given_back: list[int] = field(default_factory=list)
    fits: bool = True
    complete: bool = False

    def gives(self, given: list[Any], out: Any) -> list[Any]:
        """Note results of forward; those that are tensors."""
        leaves, self.structure = tree_flatten(out)
        taken = [t for t in (*given, *self.parameters) if isinstance(t, torch.Tensor)]
        stores = {int(memory_of(_here(t))._cdata) for t in taken}
        for leaf in leaves:
            if leaf is None:
                self.outputs.append(None)
                continue
            made = self._written(self.forward, leaf) if isinstance(leaf, torch.Tensor) else None
            store = int(memory_of(_here(leaf))._cdata) if made is not None else -1
            if made is None or store in stores or _is_known(leaf):
                self.fits = False
                break
            stores.add(store)
            self.outputs.append(made)
        return leaves

    def meets_others(self) -> None:
        """Another gradient was added to one of its inputs', which without a node in front happens sooner."""
        self.fits = self.complete = False
        self.touched()

    def begins_backward(self, recorder: DispatchRecorder, gradients: tuple[Any, ...]) -> None:
        """Gradients of its outputs are there."""
        self.fits &= self.backward is None and not torch.is_grad_enabled()
        self.output_gradients = [None if g is None else _looks(g) for g in gradients]
        self.backward = _Window(recorder)

    def ends_backward(self, gradients: tuple[Any, ...]) -> None:
        """Gradients of its inputs are there, and so must its parameters' be."""
        if not self.fits or self.backward is None or self.complete or not self.backward.close():
            self.fits = self.complete = False
            return
        own = [None if g is None else self._written(self.backward, g) for g in gradients]
        found = [None if p.grad is None else self._written(self.backward, p.grad) for p in self.parameters]
        self.gradients = [made for made in found if made is not None]
        lost = sum(made is None and g is not None for made, g in zip(own, gradients, strict=True))
        self.fits = not lost and len(self.gradients) == len(found)
        self.input_gradients = own
        self.complete = self.fits

    @staticmethod
    def _written(window: _Window, tensor: Any) -> _GivenTensor | None:
        looks, place = _looks(tensor), window.place(tensor)
        return None if looks is None or place is None else _GivenTensor(looks, place, tensor.requires_grad)

    def equals(self, other: _LayerRun) -> bool:
        """The same done, and the same come of it."""
        if not (self.complete and other.complete):
            return False
        assert self.backward is not None
        assert other.backward is not None
        mine, theirs = (
            (r.structure, r.outputs, r.output_gradients, r.input_gradients, r.gradients)
            for r in (self, other)
        )
        return self.forward.equals(other.forward) and self.backward.equals(other.backward) and mine == theirs


class _Enter(torch.autograd.Function):
    """In front of a layer that is recorded: its backward comes last."""

    @staticmethod
    def forward(ctx: Any, run: _LayerRun, *tensors: torch.Tensor) -> Any:
        ctx.run = run
        ctx.set_materialize_grads(False)
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.run.ends_backward(gradients)
        ctx.run.given_back.extend(map(_store, gradients))
        return (None, *gradients)


class _Leave(torch.autograd.Function):
    """Behind a layer that is recorded: its backward comes first."""

    @staticmethod
    def forward(ctx: Any, recorder: DispatchRecorder, run: _LayerRun, *tensors: torch.Tensor) -> Any:
        ctx.recorder, ctx.run = recorder, run
        ctx.set_materialize_grads(False)
        return tuple(t.detach() for t in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        ctx.run.begins_backward(ctx.recorder, gradients)
        return (None, None, *gradients)


class _Copy(torch.autograd.Function):
    """A layer that is not run."""

    @staticmethod
    def forward(ctx: Any, copy: _Copied, *_: torch.Tensor) -> Any:
        ctx.copy = copy
        ctx.set_materialize_grads(False)
        made = copy.forward()
        ctx.mark_non_differentiable(*(t for t, like in made if not like.differentiable))
        return tuple(t for t, _ in made)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        found = ctx.copy.backward(gradients)
        ctx.copy.given_back.extend(map(_store, found[: len(ctx.copy.inputs)]))
        return (None, *found)


@dataclass
class _LayerRow:
    """A row of layers alike, called one after another with the same: those that were run, how many copied."""

    key: tuple[int, int, int]
    number: int
    seen: set[int] = field(default_factory=set)
    runs: list[_LayerRun] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    template: _LayerRun | None = None
    last: tuple[nn.Module, list[_Looks | None]] | None = None
    """The copied layer whose gradient comes from outside the row, and how that looks."""
    copies: int = 0
    copies_back: int = 0


@dataclass
class _Copied:
    """A layer that is not run: issued as ``template`` was, if this is the wanted iteration."""

    owner: LayerCopies
    row: _LayerRow
    module: nn.Module
    parameters: list[torch.Tensor]
    inputs: list[_Looks | None]
    given_back: list[int] = field(default_factory=list)

    def meets_others(self) -> None:
        """Another gradient was added to one of its inputs', which would happen in its midst."""
        self.owner.stands_apart(self.row, self.module)

    def forward(self) -> list[tuple[torch.Tensor, _GivenTensor]]:
        """Its outputs."""
        template = self.row.template
        begin = None if template is None else template.forward.again()
        self.row.copies += 1
        like = template or self.row.runs[1]
        return [(made.again(self.owner.recorder, begin), made) for made in like.outputs if made is not None]

    def backward(self, gradients: tuple[Any, ...]) -> list[torch.Tensor | None]:
        """Gradients of its inputs and then of its parameters; None for one that adds to another."""
        owner, template = self.owner, self.row.template
        # Before the first backward of a run is over, gradients are taken to look as what they are of: that
        # iteration is not kept.
        like = template or owner.complete(self.row.key)
        looks = [None if g is None else _looks(g) for g in gradients]
        if not self.row.copies_back:
            self.row.last = self.module, looks
        self.row.copies_back += 1
        begin = None
        if template is not None and template.backward is not None:
            if looks != template.output_gradients:
                owner.stands_apart(self.row, self.module)
            begin = template.backward.again()
        if like is None:
            inputs = [None if looks is None else _GivenTensor(looks, 0) for looks in self.inputs]
            own = [
                None if looks is None else _GivenTensor(looks, 0) for looks in map(_looks, self.parameters)
            ]
        else:
            inputs, own = like.input_gradients, [*like.gradients]
        for place, parameter in enumerate(self.parameters):
            made = own[place]
            if parameter.grad is not None and made is not None:
                if begin is not None:
                    owner.recorder.wrote([_here(parameter.grad)], begin + made.place)
                own[place] = None
        return [None if made is None else made.again(owner.recorder, begin) for made in (*inputs, *own)]


class LayerCopies:
    """Copies layers from here on; ``iteration()`` says which one it is, ``wanted`` is recorded."""

    def __init__(self, recorder: DispatchRecorder, iteration: Callable[[], int], wanted: int) -> None:
        self.recorder, self.iteration, self.wanted = recorder, iteration, wanted
        self.unlike = ""
        """Why what was copied can't be kept."""
        self.begun = False
        """Whether a class has another forward by now: a script may fail of it, or in other words."""
        self.copied = 0
        self._layers: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._plain: dict[Any, Any] = {}
        self._kinds: list[_Description] = []
        self._signatures: list[Any] = []
        self._kind_of: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._rows: dict[Any, list[_LayerRow]] = {}
        self._before: dict[Any, list[_LayerRun]] = {}
        self._unfit: set[Any] = set()
        self._apart: weakref.WeakKeyDictionary[nn.Module, bool] = weakref.WeakKeyDictionary()
        """Layers whose gradients look otherwise: mostly the last."""
        self._at = 0
        self._inside = False
        self._off = False

    def install(self) -> None:
        """Watch which modules become entries of a list, and what makes copies unsafe."""
        add, reducer, expand = nn.Module.add_module, dist.Reducer, torch.Tensor.expand_as

        def add_module(module: nn.Module, name: str, child: nn.Module | None) -> None:
            add(module, name, child)
            if isinstance(module, _CONTAINERS) and child is not None:
                self._watch(module, child)

        @functools.wraps(reducer)
        def made(*given: Any, **named: Any) -> Any:
            self.withdraw("DDP fills buckets across layers")
            return reducer(*given, **named)

        def expand_as(tensor: Any, other: Any) -> Any:
            # How frameworks get hold of the node that adds a gradient up, to put a hook on it.
            if other is tensor and isinstance(tensor, nn.Parameter):
                self.withdraw("a parameter's gradient may have a hook")
            return expand(tensor, other)

        nn.Module.add_module = add_module  # type: ignore[method-assign]
        dist.Reducer = made  # type: ignore[misc,assignment]
        torch.Tensor.expand_as = expand_as  # type: ignore[method-assign,assignment]

    def withdraw(self, why: str) -> None:
        """Copy nothing any more."""
        if self.copied:
            self.unlike = self.unlike or why
        self._off = True
        for cls, plain in self._plain.items():
            if plain is None:
                del cls.forward
            else:
                cls.forward = plain
        self._plain.clear()

    def finish(self, kept: int) -> str:
        """Why the iteration that is kept must be recorded again with every layer; empty: it needn't."""
        if self.copied and kept != self.wanted:
            return "the script ended before the iteration that copies were meant for"
        if not self.unlike and self._at == self.wanted:
            self._settle()
        return self.unlike

    def stands_apart(self, row: _LayerRow, module: nn.Module) -> None:
        """A copied layer would have done otherwise: from now on it is run."""
        self._apart[module] = True
        if row.template is not None:
            self.unlike = self.unlike or _DIFFER

    def complete(self, key: Any) -> _LayerRun | None:
        """The latest run of a layer whose backward is known."""
        runs = [*self._before.get(key, ()), *(run for row in self._rows.get(key, ()) for run in row.runs)]
        return next((run for run in reversed(runs) if run.complete), None)

    # Inside.

    def _watch(self, container: nn.Module, layer: nn.Module) -> None:
        cls: Any = type(layer)
        if self._off or not any(True for _ in layer.children()):
            return
        self._layers[layer] = id(container)
        if any(base in self._plain for base in cls.__mro__[: _place_of_forward(cls) + 1]):
            return
        plain = cls.forward
        self._plain[cls] = vars(cls).get("forward")

        @functools.wraps(plain)
        def forward(module: nn.Module, *args: Any, **given: Any) -> Any:
            if torch.compiler.is_compiling():
                return plain(module, *args, **given)
            return self._forward(plain, module, args, given)

        cls.forward = forward
        self.begun = True

    def _forward(self, plain: Any, module: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        row = None if self._inside or self._off else self._row_of(module, args, given)
        if row is None:
            return plain(module, *args, **given)
        leaves, structure = tree_flatten((args, given))
        if len(row.runs) < _RUN:
            return self._run(plain, module, leaves, structure, row)
        if not self._can_copy(row, leaves):
            return plain(module, *args, **given)
        moving = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
        parameters = [p for p in module.parameters() if p.requires_grad]
        like = row.template or row.runs[1]
        self.copied += 1
        copy = _Copied(self, row, module, parameters, [_looks(t) for t in moving])
        _tell_if_shared(copy, moving)
        made = iter(_Copy.apply(copy, *moving, *parameters))
        return tree_unflatten([None if each is None else next(made) for each in like.outputs], like.structure)

    def _row_of(self, module: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> _LayerRow | None:
        """The row that a layer is part of; None: it is run as it is."""
        container = self._layers.get(module)
        asked = torch.is_grad_enabled() and torch._C._current_graph_task_id() == -1
        asked &= not torch._C._functorch.get_dynamic_layer_stack_depth()
        if container is None or module in self._apart or not asked or not self.recorder.is_recording():
            return None
        if self.iteration() != self._at:
            self._settle()
        signature = _signature(args, given)
        kind = self._kind(module) if signature is not None else None
        if kind is None:
            return None
        if signature not in self._signatures:
            self._signatures.append(signature)
        key = container, kind, self._signatures.index(signature)
        if key in self._unfit:
            return None
        rows = self._rows.setdefault(key, [])
        if not rows or id(module) in rows[-1].seen:
            rows.append(_LayerRow(key, len(rows)))
        rows[-1].seen.add(id(module))
        return rows[-1]

    def _run(self, plain: Any, module: nn.Module, leaves: list[Any], structure: Any, row: _LayerRow) -> Any:
        recorder = self.recorder
        moving = [n for n, t in enumerate(leaves) if isinstance(t, torch.Tensor) and t.requires_grad]
        parameters = [p for p in module.parameters() if p.requires_grad]
        attributes = list(_attributes(module))
        window = _Window(recorder)
        run = _LayerRun(window, parameters, lambda: self._touched(row))
        versions = [leaves[n]._version for n in moving]
        entered = list(leaves)
        for n, tensor in zip(moving, _Enter.apply(run, *(leaves[n] for n in moving)), strict=True):
            entered[n] = tensor
        args, given = tree_unflatten(entered, structure)
        _tell_if_shared(run, [leaves[n] for n in moving])
        self._inside = True
        try:
            out = plain(module, *args, **given)
        finally:
            self._inside = False
        if versions != [leaves[n]._version for n in moving]:  # a view that changes has a backward of its own
            self._touched(row)
        unchanged = attributes == list(_attributes(module))
        results = run.gives(entered, out) if window.close() and unchanged and moving else []
        passed = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
        if not (run.fits and passed) or row.key in self._unfit:
            self._refuse(row)
            return out
        left = iter(_Leave.apply(recorder, run, *passed))
        row.runs.append(run)
        known = [id(t) for t in leaves if isinstance(t, torch.Tensor) and _is_known(t)]
        if len(row.runs) == 1:
            row.known = known
        if known != row.known:
            self._refuse(row)
        return tree_unflatten(
            [next(left) if isinstance(t, torch.Tensor) and t.requires_grad else t for t in results],
            run.structure,
        )

    def _can_copy(self, row: _LayerRow, leaves: list[Any]) -> bool:
        if row.known != [id(t) for t in leaves if isinstance(t, torch.Tensor) and _is_known(t)]:
            return False
        if row.copies:
            return True
        second, third = row.runs[1:]
        alike = second.forward.equals(third.forward) and second.outputs == third.outputs
        if not alike:
            self._refuse(row)
            return False
        if self._at == self.wanted:
            before = self._before.get(row.key, [])
            template = before[row.number] if row.number < len(before) else None
            if template is None or not template.forward.equals(second.forward):
                self._unfit.add(row.key)
                return False
            row.template = template
        return self._at <= self.wanted

    def _refuse(self, row: _LayerRow) -> None:
        self._unfit.add(row.key)
        if row.copies and row.template is not None:
            self.unlike = self.unlike or _DIFFER

    def _touched(self, row: _LayerRow) -> None:
        """A layer that was run did otherwise, for the nodes around it."""
        self._unfit.add(row.key)
        if self._at == self.wanted:
            self.unlike = self.unlike or _DIFFER

    def _settle(self) -> None:
        """An iteration has ended: what it shows of backward passes."""
        self._before = {
            key: [run for run in map(self._close, rows) if run] for key, rows in self._rows.items()
        }
        self._rows.clear()
        self._at = self.iteration()
        self._kind_of.clear()

    def _close(self, row: _LayerRow) -> _LayerRun | None:
        """What stands for a row's layers; None if nothing does, or it had no backward."""
        if len(row.runs) < _RUN:
            return None
        _, second, third = row.runs
        windows = [w for run in row.runs for w in (run.forward, run.backward) if w is not None]
        alike = second.equals(third) and row.copies_back == row.copies
        if row.template is not None and not (alike and second.equals(row.template)):
            self.unlike = self.unlike or _DIFFER
            return None
        if not alike:
            if second.complete:
                self._unfit.add(row.key)
            if row.copies and any(window.unknown for window in windows):  # nobody knows how many
                self.unlike = self.unlike or _DIFFER
            return None
        if row.last is not None and row.last[1] != second.output_gradients:
            self._apart[row.last[0]] = True
        for window in windows[2:4]:
            for name, times in window.unknown.items():
                self.recorder.unknown[name] += times * row.copies
        return second

    def _kind(self, module: nn.Module) -> int | None:
        """Which kind of layer it is; None: one whose settings can't be compared."""
        found = self._kind_of.get(module)
        if found is None:
            description = _describe(module)
            if description is None:
                return None
            same = (n for n, each in enumerate(self._kinds) if each.equals(description))
            found = next(same, len(self._kinds))
            if found == len(self._kinds):
                self._kinds.append(description)
            self._kind_of[module] = found
        return found


def _signature(args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """What a layer is called with, as far as two calls can be compared; None: not."""
    leaves, structure = tree_flatten((args, given))
    found: list[Any] = [structure, torch.is_autocast_enabled()]
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            looks = _looks(leaf)
            if looks is None or isinstance(leaf, nn.Parameter):
                return None
            found.append((looks, leaf.requires_grad))
        elif isinstance(leaf, _VALUES):
            found.append((type(leaf), leaf))
        else:
            return None
    return tuple(found)


class _Same:
    """An object that isn't plain: the same one, or one of the same attributes."""

    def __init__(self, value: Any, depth: int) -> None:
        self.value, self.depth = value, depth

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same) or type(self.value) is not type(other.value):
            return False
        if self.value is other.value:
            return True
        if self.depth >= _DEPTH or not hasattr(self.value, "__dict__"):
            return False
        mine, theirs = (_frozen(vars(each.value), each.depth + 1) for each in (self, other))
        return bool(mine == theirs)

    __hash__ = None  # type: ignore[assignment]


@dataclass
class _Description:
    """A layer's classes, settings, parameters and hooks, in order: name and value of each."""

    names: list[str]
    values: list[Any]
    read: frozenset[str]

    def equals(self, other: _Description) -> bool:
        """Alike up to numbers that no method reads, such as a layer's own."""
        if self.names != other.names:
            return False
        for name, mine, theirs in zip(self.names, self.values, other.values, strict=True):
            if mine != theirs and not (type(mine) is type(theirs) is int and name not in self.read):
                return False
        return True


def _describe(module: nn.Module) -> _Description | None:
    """None where a submodule or parameter has hooks that aren't torch's own."""
    names: list[str] = []
    values: list[Any] = []
    read: set[str] = set()

    def say(name: str, value: Any) -> None:
        names.append(name)
        values.append(value)

    for path, part in module.named_modules():
        cls: Any = type(part)
        read |= _reads(cls)
        say("", (path, cls, part.training, part.__dict__.get("forward")))
        for name, tensor in (*part._parameters.items(), *part._buffers.items()):
            if tensor is None:
                say(name, None)
                continue
            if tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None):
                return None
            looks = _looks(tensor)
            if looks is None:
                return None
            say(name, (looks, tensor.requires_grad, _digest(tensor)))
        for name, value in vars(part).items():
            if name not in _OWN and not name.startswith("__") and name != "forward":
                say(name, _frozen(value, 0))
        if path:
            for hook in _hooks(part):
                if not str(getattr(hook, "__module__", "")).startswith("torch."):
                    return None
                say("", (hook.__module__, getattr(hook, "__qualname__", "")))
    return _Description(names, values, frozenset(read))


def _place_of_forward(cls: type) -> int:
    """Which of a class's bases has the forward that it takes."""
    return next(n for n, base in enumerate(cls.__mro__) if "forward" in vars(base))


def _hooks(module: nn.Module) -> Iterator[Any]:
    for kind in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"):
        for hook in getattr(module, kind).values():
            yield hook.func if isinstance(hook, functools.partial) else hook


def _digest(tensor: torch.Tensor) -> int | None:
    """A hash of the values of a tensor; None: they are not known."""
    values = values_of(_here(tensor))
    if values is None:
        return None
    with no_dispatch():
        return hash(bytes(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()))


def _frozen(value: Any, depth: int) -> Any:
    """A setting, to be compared."""
    if isinstance(value, torch.Tensor):
        return _looks(value), value.requires_grad, _digest(value)
    if isinstance(value, _VALUES):
        return value
    if isinstance(value, MethodType):
        return value.__func__, value.__self__ if not isinstance(value.__self__, nn.Module) else None
    if isinstance(value, list | tuple) and depth < _DEPTH:
        return type(value), [_frozen(each, depth + 1) for each in value]
    if isinstance(value, dict) and depth < _DEPTH:
        return type(value), [(key, _frozen(each, depth + 1)) for key, each in value.items()]
    return _Same(value, depth)


@functools.cache
def _reads(cls: Any) -> frozenset[str]:
    """Names that a class's methods use, and functions beside it, which may be given a layer; of torch's own
    classes none matter.
    """
    found: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.startswith("torch."):
            continue
        beside = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        for name, value in (*vars(base).items(), *beside.items()):
            method = _function(value)
            if name not in _UNREAD and method is not None:
                found.update(_names(method.__code__))
    return frozenset(found)


def _function(value: Any) -> FunctionType | None:
    """What a method, a property or a decorated function is at bottom."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, classmethod | staticmethod):
        value = value.__func__
    elif isinstance(value, functools.cached_property):
        value = value.func
    while isinstance(value, FunctionType | functools._lru_cache_wrapper) and hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
        elif isinstance(constant, str):  # getattr
            yield constant


def _attributes(module: nn.Module) -> Iterator[tuple[str, _Is]]:
    """Attributes of a layer and what they are: other ones after a call mean that layers tell each other."""
    for path, part in module.named_modules():
        for name, value in (*vars(part).items(), *part._buffers.items()):
            if name not in _OWN:
                yield f"{path}.{name}", _Is(value)


class _Is:
    """An object, as long as it was."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.length = len(value) if isinstance(value, Sized) and not isinstance(value, torch.Tensor) else 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Is) and self.value is other.value and self.length == other.length

    __hash__ = None  # type: ignore[assignment]
