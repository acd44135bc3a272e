"""The proof of a plan: its data, exactly, and every order in which its steps may run.

*Order.* A step happens after the one before it in its block, and after what it waits for
(:mod:`~cosim.pattern.mscclpp.order`). Each block knows, as a vector clock, which steps of every other have
happened (Mattern, 1989). Two steps that touch a cell of memory, one of them to write, must be ordered: else
it is a race, and refused. A relaxed signal orders steps, but not what they did to memory; it does say, before
a kernel ends, that peers are through.

*Values.* As all conflicting accesses are ordered, one replay stands for all. A cell holds a piece of data and
the GPUs that contributed to it; adding up two pieces, or a contribution twice, spoils it.

At the end each cell that the collective promises holds its piece from every contributor, and whoever wrote it
was through before the GPU's kernel ended. Of a pipeline one turn is proved: turns work on other data.

Not proved: that a plan can be launched again at once (buffers that are written again, poison that was
cleared), and thread blocks against the number of units (all must run at once).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from cosim.errors import AlgorithmError, Location
from cosim.pattern.mscclpp.order import Cell, StepOrder, cells, order_of
from cosim.pattern.mscclpp.plan import KernelPlan, MemoryPart
from cosim.pattern.template import Collective

CLOCK_LIMIT = 1 << 26


@dataclass(frozen=True, slots=True)
class _CellData:
    """A piece of data, and who contributed to it; ``spoiled`` says how it was, where it was."""

    piece: int
    of: frozenset[int]
    spoiled: str = ""


@dataclass(frozen=True, slots=True)
class KernelProof:
    """What was proved; ``str`` says it."""

    plan: KernelPlan
    order: StepOrder

    def __str__(self) -> str:
        plan = self.plan
        kinds = Counter(step.name for *_, step in plan.steps())
        blocks = max(len(gpu.blocks) for gpu in plan.gpus)
        where = "in place" if plan.in_place else "out of place"
        return (
            f"proved: {plan.name}, {plan.collective.value} over {len(plan.gpus)} GPUs, {where}\n"
            f"  at most {blocks} thread blocks of {plan.threads} threads on a GPU; "
            f"{sum(kinds.values())} steps: "
            + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            + "\n  every order of steps gives this result"
        )


def prove_plan(plan: KernelPlan, *, root: int = 0) -> KernelProof:
    """Refuse a plan that doesn't do what its collective promises.

    Raises
    ------
    AlgorithmError
        A deadlock, a race, or a wrong result: with file, GPU, block and step.
    """
    order = order_of(plan)
    if len(order.events) * order.num_threads > CLOCK_LIMIT:
        raise AlgorithmError(
            f"{plan.name}: {len(order.events)} steps of {order.num_threads} thread blocks are more than "
            "is proved",
            location=Location(plan.file) if plan.file else None,
        )
    _KernelReplay(order, root).run()
    return KernelProof(plan, order)


class _KernelReplay:
    """Values and clocks of every GPU's memory while the steps run in one order."""

    def __init__(self, order: StepOrder, root: int) -> None:
        self.order, self.plan = order, order.plan
        self.start, self.due = _promise(self.plan, root)
        self.holds: dict[Cell, _CellData] = dict(self.start)
        self.writer: dict[Cell, int] = {}
        self.readers: dict[Cell, list[int]] = {}
        shape = (len(order.events), order.num_threads)
        self.seen = np.full(shape, -1, np.int32)
        """By event: up to which step of each block it sees what was done to memory."""
        self.past = np.full(shape, -1, np.int32)
        """The same of what has happened."""

    def run(self) -> None:
        """Raise where something is wrong."""
        for number in self.order.order:
            self._clock(number)
            self._take(number)
        self._check_ends()

    def _clock(self, number: int) -> None:
        event, before = self.order.events[number], self.order.before[number]
        seen, past = self.seen[number], self.past[number]
        if before >= 0:
            seen[:], past[:] = self.seen[before], self.past[before]
        for one, orders_memory in self.order.waits[number]:
            np.maximum(past, self.past[one], out=past)
            if orders_memory:
                np.maximum(seen, self.seen[one], out=seen)
        seen[event.thread] = past[event.thread] = event.index

    def _sees(self, number: int, other: int) -> bool:
        event = self.order.events[other]
        return other == number or bool(self.seen[number, event.thread] >= event.index)

    def _take(self, number: int) -> None:
        stores: list[tuple[Cell, _CellData]] = []
        for move in self.order.events[number].step.moves:
            rows = [self._read(number, part) for part in move.sources]
            values = [self._sum(number, column) for column in zip(*rows, strict=True)]
            for part in move.targets:
                stores += zip(cells(self.plan, part), values, strict=True)
        for cell, value in stores:
            self._write(number, cell, value)

    def _read(self, number: int, part: MemoryPart) -> list[_CellData]:
        values = []
        for cell in cells(self.plan, part):
            writer = self.writer.get(cell)
            if writer is not None and not self._sees(number, writer):
                raise self._race(number, writer, cell, "reads", "writes")
            self.readers.setdefault(cell, []).append(number)
            values.append(self.holds.get(cell) or _CellData(-1, frozenset(), "holds nothing yet"))
        return values

    def _write(self, number: int, cell: Cell, value: _CellData) -> None:
        writer = self.writer.get(cell)
        if writer is not None and not self._sees(number, writer):
            raise self._race(number, writer, cell, "writes", "writes, too")
        for reader in self.readers.pop(cell, ()):
            if not self._sees(number, reader):
                raise self._race(number, reader, cell, "writes", "reads")
        self.writer[cell], self.holds[cell] = number, value

    def _race(self, number: int, other: int, cell: Cell, what: str, its: str) -> AlgorithmError:
        e = self.order.events[other]
        return self.order.wrong(
            number,
            f"race: {what} {_named(cell)}, which {self.plan.place(e.gpu, e.block, e.index)} "
            f"({e.step.name}) {its}; "
            "nothing orders the two, a wait is missing",
        )

    def _sum(self, number: int, values: tuple[_CellData, ...]) -> _CellData:
        first = values[0]
        of: frozenset[int] = first.of
        for value in values:
            if value.spoiled:
                return value
        for value in values[1:]:
            e = self.order.events[number]
            where = self.plan.place(e.gpu, e.block, e.index)
            if value.piece != first.piece:
                return _CellData(
                    -1, of, f"is piece {first.piece} and piece {value.piece} added up by {where}"
                )
            if of & value.of:
                return _CellData(-1, of, f"has what comes from GPU {min(of & value.of)} twice, by {where}")
            of |= value.of
        return _CellData(first.piece, of)

    def _due_here(self) -> dict[Cell, _CellData]:
        """What is due. Whom all GPUs send to, one so far after each, is the plan's to say."""
        if self.plan.collective is not Collective.SEND_RECV:
            return self.due
        n, each = len(self.plan.gpus), self.plan.num_cells
        held = self.holds.get(next(iter(self.due)))
        far = (held.piece // each if held is not None and held.piece > 0 else 0) or n - 1
        pieces = {cell: (value.piece + far * each) % (n * each) for cell, value in self.due.items()}
        return {cell: _CellData(piece, frozenset({piece // each})) for cell, piece in pieces.items()}

    def _check_ends(self) -> None:
        ends = np.full((len(self.plan.gpus), self.order.num_threads), -1, np.int32)
        for number, event in enumerate(self.order.events):
            np.maximum(ends[event.gpu], self.past[number], out=ends[event.gpu])
        for cell, wanted in self._due_here().items():
            held, writer = self.holds.get(cell), self.writer.get(cell)
            said = None
            if held is None:
                said = "holds nothing"
            elif held.spoiled:
                said = held.spoiled
            elif held.piece != wanted.piece:
                said = f"holds piece {held.piece} of the data where piece {wanted.piece} is due"
            elif held.of != wanted.of:
                missing = ", ".join(map(str, sorted(wanted.of - held.of)[:8]))
                said = f"lacks what comes from GPU {missing}"
            elif writer is not None:
                event = self.order.events[writer]
                if ends[cell[0], event.thread] < event.index:
                    raise self.order.wrong(
                        writer,
                        f"race: writes {_named(cell)}, and GPU {cell[0]} may be through before; "
                        "a wait is missing",
                    )
            if said is None:
                continue
            if writer is not None:
                raise self.order.wrong(writer, f"a wrong result: {_named(cell)} {said}")
            raise AlgorithmError(
                f"{self.plan.name}: a wrong result: {_named(cell)} {said}; no step writes it",
                location=Location(self.plan.file) if self.plan.file else None,
            )


def _named(cell: Cell) -> str:
    names = {"i": "input", "o": "output", "s": "scratch"}
    return f"cell {cell[2]} of GPU {cell[0]}'s {names[cell[1]]}"


def _promise(plan: KernelPlan, root: int) -> tuple[dict[Cell, _CellData], dict[Cell, _CellData]]:
    """What each GPU's memory holds before, and what it has to hold after."""
    n, what = len(plan.gpus), plan.collective
    inputs, outputs = plan.num_cells, plan.gpus[0].cells["o"]
    gathers = what in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
    small, large = (inputs, outputs) if what is Collective.ALL_GATHER else (outputs, inputs)
    for gpu, its in enumerate(plan.gpus):
        fits = its.cells["i"] == inputs and its.cells["o"] == outputs and inputs > 0
        if gathers and not plan.in_place:
            fits = fits and small * n == large
        if not fits or (what is Collective.ALL_TO_ALL and inputs % n):
            raise AlgorithmError(
                f"{plan.name}: GPU {gpu} has {its.cells['i'] // plan.cells_per_chunk} chunks of input and "
                f"{its.cells['o'] // plan.cells_per_chunk} of output, and GPU 0 "
                f"{inputs // plan.cells_per_chunk} and {outputs // plan.cells_per_chunk}, which is no "
                f"{what.value} over {n} GPUs",
                location=Location(plan.file) if plan.file else None,
            )
    everyone = frozenset(range(n))
    start: dict[Cell, _CellData] = {}
    due: dict[Cell, _CellData] = {}
    for gpu in range(n):
        before, after = _of_gpu(what, gpu, n, inputs, root)
        for buffer, wanted, into in (("i", before, start), ("o", after, due)):
            for k, piece in wanted.items():
                (cell,) = cells(plan, MemoryPart(gpu, buffer, k, 1))
                into[cell] = _CellData(piece, frozenset({gpu}))
    if what in (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER):
        due = {cell: _CellData(value.piece, everyone) for cell, value in due.items()}
    else:
        owner = {value.piece: value.of for value in start.values()}
        due = {cell: _CellData(value.piece, owner.get(value.piece, everyone)) for cell, value in due.items()}
    return start, due


def _of_gpu(
    what: Collective, gpu: int, n: int, inputs: int, root: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Pieces by cell of the input before, and of the output after."""
    every = {k: k for k in range(inputs)}
    own = {k: gpu * inputs + k for k in range(inputs)}
    if what is Collective.ALL_REDUCE:
        return every, every
    if what is Collective.BROADCAST:
        return (every if gpu == root else {}), every
    if what is Collective.ALL_GATHER:
        return own, {k: k for k in range(n * inputs)}
    if what is Collective.SEND_RECV:
        return own, own
    share = inputs // n
    if what is Collective.REDUCE_SCATTER:
        return every, {k: gpu * share + k for k in range(share)}
    return own, {k: k // share * inputs + gpu * share + k % share for k in range(inputs)}
