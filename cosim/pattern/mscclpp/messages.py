"""A plan as a template: what is timed.

A load of a range from another GPU is a row without bytes that asks for it, and one from there; a store is a
row to there; a signal is a row without bytes. What a GPU moves within itself takes no time, but for
reductions, which take what the section's ``reduction_rate`` says (none where a switch adds up);
``endpoint_delay`` lies before each row.

A block's stores go on behind it; a signal that isn't relaxed waits for those before it, and so does the end.
Where a step loads and stores, each thread stores what it loaded before it loads again: up to 16 turns of that
are rows. A kernel begins, for those who load from it, when its rank has come. It has its units until the
rank's end: both marks say how many blocks it has.

The device network asks for each line, so that the row that asks takes no time there; to networks of message
size it is a message. They don't know that a switch adds up or copies: each GPU's part is a message of its
own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from cosim.kernel import kernel
from cosim.pattern.assemble import COMPLETION, START
from cosim.pattern.costs import Costs
from cosim.pattern.mscclpp.order import StepOrder, order_of
from cosim.pattern.mscclpp.plan import (
    KernelPlan,
    MemoryMove,
    MemoryPart,
    PlanBlock,
    PlanGpu,
    PlanStep,
    Polled,
)
from cosim.pattern.rows import REDUCED_LIMIT, Rows, Wait
from cosim.pattern.template import Template

MOST_TURNS = 64
"""Turns of a pipeline; one that has more is given longer turns."""
_MOST_PIECES = 16
_THREAD_BYTES = 16
"""That a thread loads or stores at once."""

Waits = frozenset[Wait]


def plan_template(plan: KernelPlan, size_bytes: int, costs: Costs, exit_delay_ps: int = 0) -> Template:
    """The template of a plan that has been proved."""
    cell = costs.share(size_bytes, plan.num_cells)
    return _PlanMessages(order_of(_unrolled(plan, cell)), cell, costs).template(size_bytes, exit_delay_ps)


def _unrolled(plan: KernelPlan, cell: int) -> KernelPlan:
    """The plan with the turns of its pipelines one after the other."""
    turns = 1
    for gpu in plan.gpus:
        for block in gpu.blocks:
            for step in block.steps[slice(*block.loop)]:
                for move in step.moves:
                    turns = max(turns, -(-move.sources[0].count * cell // block.unit_bytes))
    turns = min(turns, MOST_TURNS)
    if turns == 1:
        return plan

    def unroll(block: PlanBlock) -> PlanBlock:
        first, past = block.loop
        part = tuple(replace(step, turns=turns) for step in block.steps[first:past])
        return replace(block, steps=block.steps[:first] + turns * part + block.steps[past:], loop=(0, 0))

    gpus = tuple(PlanGpu(gpu.cells, tuple(map(unroll, gpu.blocks)), gpu.semaphores) for gpu in plan.gpus)
    return replace(plan, gpus=gpus)


class _PlanMessages:
    """Rows as steps are gone through, in an order in which they can run."""

    def __init__(self, order: StepOrder, cell: int, costs: Costs) -> None:
        self.order, self.cell, self.costs = order, cell, costs
        self.rows = Rows(len(order.plan.gpus), reduces=len(order.events) <= REDUCED_LIMIT)
        self.done: list[Waits] = [frozenset()] * len(order.events)
        self.stored: dict[int, set[Wait]] = defaultdict(set)
        """By thread block: stores that nothing has waited for yet."""
        self.came: dict[tuple[int, int], set[Wait]] = defaultdict(set)
        """By (event, GPU): what has come there of it, data or a signal."""

    def template(self, size_bytes: int, exit_delay_ps: int) -> Template:
        """All of it."""
        plan, n = self.order.plan, len(self.order.plan.gpus)
        last: list[set[Wait]] = [{(gpu, COMPLETION)} for gpu in range(n)]
        for number in self.order.order:
            self._take(number)
        for number, event in enumerate(self.order.events):
            last[event.gpu] |= self.done[number] | self.stored[event.thread]
        delay = self.costs.endpoint_delay_ps + exit_delay_ps
        ends = [self.rows.least(each) for each in last]
        blocks = kernel.DEVICE_BLOCK * np.array([len(gpu.blocks) for gpu in plan.gpus])
        marks = blocks | kernel.DEVICE_BEGINS, blocks | kernel.DEVICE_ENDS
        return self.rows.template(plan.name, plan.collective, size_bytes, ends, delay, marks)

    def _take(self, number: int) -> None:
        event = self.order.events[number]
        before: set[Wait] = (
            set(self.done[self.order.before[number]]) if event.index else {(event.gpu, COMPLETION)}
        )
        for one, _ in self.order.waits[number]:
            before |= self.came.get((one, event.gpu)) or self.done[one]
        waits = self.rows.least(before)
        if event.step.moves:  # all at once
            waits = self.rows.least(
                {wait for move in event.step.moves for wait in self._move(number, move, waits)}
            )
        if event.step.signals:
            fenced = self.rows.least(
                set(waits) | (set() if event.step.relaxed else self.stored[event.thread])
            )
            waits = self._signal(number, waits, fenced)
        self.done[number] = waits

    def _signal(self, number: int, waits: Waits, fenced: Waits) -> Waits:
        event = self.order.events[number]
        for key in event.step.signals:
            if key[0] == "semaphore":
                self.came[number, event.gpu] |= fenced
                continue
            peer = key[2]
            row = self._add(number, event.gpu, peer, 0, fenced)
            self.came[number, peer].add((row, COMPLETION))
            waits = waits | {(row, START)}
        return self.rows.least(set(waits))

    def _add(self, number: int, src: int, dst: int, size: int, waits: Waits, flags: int = 0) -> int:
        channel = kernel.DEVICE_BLOCK * (1 + self.order.events[number].block) + flags
        return self.rows.add(src, dst, size, self.costs.endpoint_delay_ps, channel, waits)

    def _bytes(self, step: PlanStep, part: MemoryPart, pieces: int) -> int:
        size = part.count * self.cell * (2 if part.polled is Polled.PACKET else 1)
        return -(-size // (pieces * step.turns))

    def _move(self, number: int, move: MemoryMove, waits: Waits) -> Waits:
        """The rows of a move; what the block's next step waits for."""
        event, gpu = self.order.events[number], self.order.events[number].gpu
        step = event.step
        loads = [part for part in move.sources if part.gpu != gpu]
        stores = [part for part in move.targets if part.gpu != gpu]
        whole = self._bytes(step, move.sources[0], 1)
        pieces = 1
        if loads and stores:
            pieces = min(_MOST_PIECES, max(1, -(-whole // (self.order.plan.threads * _THREAD_BYTES))))
        adds = len(move.sources) > 1 and not step.by_switch
        reduction = self.costs.reduction_ps(-(-whole // pieces)) if adds else 0
        started: set[Wait] = set()
        for _ in range(pieces):
            come: set[Wait] = set()
            for part, flags in self._flagged(step, loads):
                flags |= kernel.DEVICE_GET
                asked = self._add(number, gpu, part.gpu, 0, waits, flags)
                given = self.rows.least({(asked, COMPLETION), (part.gpu, COMPLETION)})
                size = self._bytes(step, part, pieces)
                come.add((self._add(number, part.gpu, gpu, size, given, flags), COMPLETION))
            if come:
                waits = self.rows.least(come)
            if reduction:
                waits = frozenset({(self.rows.add(gpu, gpu, 0, reduction, 0, waits), COMPLETION)})
            for part, flags in self._flagged(step, stores):
                row = self._add(number, gpu, part.gpu, self._bytes(step, part, pieces), waits, flags)
                self.stored[event.thread].add((row, COMPLETION))
                self.came[number, part.gpu].add((row, COMPLETION))
                started.add((row, START))
        return self.rows.least(set(waits) | started)

    @staticmethod
    def _flagged(step: PlanStep, parts: list[MemoryPart]) -> list[tuple[MemoryPart, int]]:
        """One row takes this GPU's link where a switch adds up or copies."""
        merged = kernel.DEVICE_MERGED if step.by_switch else 0
        return [(part, merged if k else 0) for k, part in enumerate(parts)]
