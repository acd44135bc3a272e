"""In what order the steps of a plan run, and whether they can: who waits for whom.

The n-th wait on a channel meets the n-th signal on it; of a semaphore that begins with k, the n-th acquire
meets release n - k. A barrier waits for all blocks that it names. What reads packets, or data that is polled,
waits for whoever writes it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from cosim.errors import AlgorithmError, Location
from cosim.pattern.mscclpp.plan import Key, Part, Plan, Polled, Step
from cosim.pattern.template import Collective

Cell = tuple[int, str, int]
"""GPU, buffer, cell."""


@dataclass(frozen=True, slots=True)
class Event:
    """A step: ``thread`` numbers the blocks of all GPUs."""

    gpu: int
    block: int
    index: int
    thread: int
    step: Step


@dataclass
class Order:
    """Events, an order in which they can run, and for each what it waits for besides its block's step before
    it: (event, whether what that one did to memory is seen).
    """

    plan: Plan
    events: list[Event] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    """The step before it in its block; -1: it is the first."""
    waits: list[list[tuple[int, bool]]] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    num_threads: int = 0

    def wrong(self, event: int, what: str) -> AlgorithmError:
        """An error that says where."""
        e = self.events[event]
        return AlgorithmError(
            f"{self.plan.name}: {self.plan.place(e.gpu, e.block, e.index)} ({e.step.name}): {what}",
            location=Location(self.plan.file) if self.plan.file else None,
        )


def cells(plan: Plan, part: Part) -> list[Cell]:
    """The memory behind a part: in place, input and output are one."""
    shift, buffer = 0, part.buffer
    if plan.in_place:
        own = plan.gpus[part.gpu].cells
        if plan.collective is Collective.ALL_GATHER:
            if buffer == "i":
                buffer, shift = "o", part.gpu * own["i"]
        elif plan.collective is Collective.REDUCE_SCATTER:
            if buffer == "o":
                buffer, shift = "i", part.gpu * own["o"]
        elif buffer == "o":
            buffer = "i"
    first = part.first + shift
    return [(part.gpu, buffer, cell) for cell in range(first, first + part.count)]


def order_of(plan: Plan) -> Order:
    """Who waits for whom, and an order in which all steps run.

    Raises
    ------
    AlgorithmError
        A deadlock, or a wait that nobody answers; names GPU, block and step.
    """
    found = Order(plan)
    for gpu, its in enumerate(plan.gpus):
        for block in its.blocks:
            for index, step in enumerate(block.steps):
                found.before.append(len(found.events) - 1 if index else -1)
                found.events.append(Event(gpu, block.number, index, found.num_threads, step))
            found.num_threads += 1
    found.waits = [[] for _ in found.events]
    _meet_signals(found)
    _meet_barriers(found)
    _meet_writers(found)
    found.order = _run(found)
    return found


def _meet_signals(found: Order) -> None:
    sent: dict[Key, list[int]] = defaultdict(list)
    waited: dict[Key, list[int]] = defaultdict(list)
    for number, event in enumerate(found.events):
        for key in event.step.signals:
            sent[key].append(number)
        for key in event.step.waits:
            waited[key].append(number)
    for key, waiting in waited.items():
        begins = found.plan.gpus[key[1]].semaphores[key[2]] if key[0] == "semaphore" else 0
        for those in (waiting, sent.get(key, [])):
            threads = {found.events[one].thread for one in those}
            if len(threads) > 1:
                raise found.wrong(
                    those[-1], f"shares {_named(key)} with another block, so who meets whom is open"
                )
        signals = sent.get(key, [])
        for nth, wait in enumerate(waiting[begins:]):
            if nth >= len(signals):
                raise found.wrong(
                    wait, f"deadlock: waits for signal {nth} on {_named(key)}, which nobody sends"
                )
            relaxed = found.events[signals[nth]].step.relaxed or found.events[wait].step.relaxed
            found.waits[wait].append((signals[nth], not relaxed))


def _named(key: Key) -> str:
    if key[0] == "semaphore":
        return f"semaphore {key[2]} of GPU {key[1]}"
    return f"{key[0]} channel {key[3]} from GPU {key[1]} to GPU {key[2]}"


def _meet_barriers(found: Order) -> None:
    turns: dict[tuple[Key, int], list[int]] = defaultdict(list)
    met: dict[tuple[int, Key], int] = defaultdict(int)
    for number, event in enumerate(found.events):
        key = event.step.barrier
        if key is not None:
            turn = met[event.thread, key]
            met[event.thread, key] += 1
            turns[key, turn].append(number)
    for (key, _), meeting in turns.items():
        _, _, name, count = key
        if len(meeting) != count:
            raise found.wrong(
                meeting[0],
                f"deadlock: barrier {name} is for {count} blocks, and {len(meeting)} come to it",
            )
        for one in meeting:
            befores = [found.before[other] for other in meeting if other != one]
            found.waits[one] += [(before, True) for before in befores if before >= 0]


def _meet_writers(found: Order) -> None:
    """What is polled is read after it was written."""
    writers: dict[Cell, list[int]] = defaultdict(list)
    polled: list[tuple[int, Part]] = []
    for number, event in enumerate(found.events):
        for move in event.step.moves:
            polled += [(number, part) for part in move.sources if part.polled is not Polled.NO]
            for part in move.targets:
                if part.polled is not Polled.NO:
                    for cell in cells(found.plan, part):
                        writers[cell].append(number)
    for number, part in polled:
        by: set[int] = set()
        for cell in cells(found.plan, part):
            those = writers.get(cell, [])
            if len(those) != 1:
                how = "nobody writes" if not those else f"{len(those)} steps write"
                raise found.wrong(
                    number, f"polls cell {cell[2]} of buffer {cell[1]}, to which {how} what it polls for"
                )
            by.add(those[0])
        found.waits[number] += [(one, True) for one in sorted(by) if one != number]


def _run(found: Order) -> list[int]:
    left = [len(waits) + (before >= 0) for waits, before in zip(found.waits, found.before, strict=True)]
    after: list[list[int]] = [[] for _ in found.events]
    for number, waits in enumerate(found.waits):
        for one, _ in waits:
            after[one].append(number)
        if found.before[number] >= 0:
            after[found.before[number]].append(number)
    ready = [number for number, count in enumerate(left) if not count]
    order: list[int] = []
    for number in ready:  # grows
        order.append(number)
        for one in after[number]:
            left[one] -= 1
            if not left[one]:
                ready.append(one)
    if len(order) < len(found.events):
        done = set(order)
        stuck = [
            number for number in range(len(found.events))
            if number not in done and (found.before[number] < 0 or found.before[number] in done)
        ]  # fmt: skip
        others = [found.events[one] for one in stuck[1:4]]
        said = "".join(f"; {found.plan.place(e.gpu, e.block, e.index)} waits, too" for e in others)
        raise found.wrong(stuck[0], f"deadlock: what it waits for waits for it{said}")
    return order
