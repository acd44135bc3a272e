"""Which send meets which receive, in what order the steps of a program can run, and whether they can."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from cosim.errors import AlgorithmError, Location
from cosim.formats.msccl.program import RECEIVES, SENDS, MscclProgram, Step

SLOTS = 8
"""Messages that a connection holds until they are received: NCCL_STEPS of NCCL's device code."""


@dataclass(frozen=True, slots=True)
class MscclStep:
    """A step of the program: GPU, position of the thread block on it, position of the step."""

    gpu: int
    block: int
    index: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """Events by number: all GPUs' thread blocks' steps in the file's order.

    ``waits[e]`` are the events that e waits for: the step before it, what its depid names, and, where it
    receives, the send ``meets[e]`` (else -1). ``order`` is an order in which all can run, ``slots`` the least
    number of messages that each connection must hold for that.
    """

    program: MscclProgram
    events: tuple[MscclStep, ...]
    waits: tuple[tuple[int, ...], ...]
    meets: tuple[int, ...]
    order: tuple[int, ...]
    slots: int

    def step(self, event: int) -> Step:
        """The step of an event."""
        at = self.events[event]
        return self.program.gpus[at.gpu].blocks[at.block].steps[at.index]

    def says(self, event: int) -> str:
        """The event as a person finds it in the file."""
        at = self.events[event]
        return self.program.says(at.gpu, at.block, at.index)

    def error(self, event: int, message: str, hint: str | None = None) -> AlgorithmError:
        """A mistake at an event."""
        where = Location(self.program.file, self.step(event).line or None)
        return AlgorithmError(f"{self.says(event)}: {message}", location=where, hint=hint)


def schedule(program: MscclProgram) -> Schedule:
    """Match sends with receives and find an order.

    Raises
    ------
    AlgorithmError
        Two thread blocks on one end of a connection, a message without its other half, or steps that wait for
        each other; says which, with lines.
    """
    events: list[MscclStep] = []
    by_number: dict[tuple[int, int], int] = {}
    for gpu, its in enumerate(program.gpus):
        for position, block in enumerate(its.blocks):
            by_number[gpu, block.number] = len(events)
            events += [MscclStep(gpu, position, index) for index in range(len(block.steps))]
    draft = Schedule(program, tuple(events), (), (), (), 0)
    meets, connections = _match(draft)
    waits: list[tuple[int, ...]] = []
    for number, event in enumerate(events):
        home = program.gpus[event.gpu]
        mine = [number - 1] if event.index else []
        named = home.blocks[event.block].steps[event.index].waits_for
        if named is not None:
            mine.append(by_number[event.gpu, named[0]] + named[1])
        if meets[number] >= 0:
            mine.append(meets[number])
        waits.append(tuple(dict.fromkeys(mine)))
    draft = Schedule(program, tuple(events), tuple(waits), tuple(meets), (), 0)
    order, stuck = _order(waits)
    if stuck:
        raise _deadlock(draft, waits, stuck, "")
    for slots in (1, 2, 4, SLOTS):
        held = _with_slots(waits, connections, slots)
        _, stuck = _order(held)
        if not stuck:
            return Schedule(program, tuple(events), tuple(waits), tuple(meets), tuple(order), slots)
    raise _deadlock(
        draft, held, stuck, f" where a connection holds {SLOTS} messages, as NCCL's do (NCCL_STEPS)"
    )


def _match(draft: Schedule) -> tuple[list[int], list[tuple[list[int], list[int]]]]:
    """For each receive its send, else -1; and each connection's sends and receives."""
    program = draft.program
    sends: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    receives: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    owner: dict[tuple[str, int, int, int], int] = {}
    for number, event in enumerate(draft.events):
        block = program.gpus[event.gpu].blocks[event.block]
        kind = block.steps[event.index].kind
        for way, kinds, peer, queue in (
            ("sends to", SENDS, block.send, sends),
            ("receives from", RECEIVES, block.recv, receives),
        ):
            if kind not in kinds:
                continue
            key = (event.gpu, peer, block.channel) if queue is sends else (peer, event.gpu, block.channel)
            held = owner.setdefault((way, *key), event.block)
            if held != event.block:
                other = program.gpus[event.gpu].blocks[held].number
                raise draft.error(
                    number,
                    f"tb {other} of the GPU also {way} GPU {peer} on channel {block.channel}; a connection "
                    "has one thread block at each end",
                    "give one of them another chan",
                )
            queue[key].append(number)
    meets = [-1] * len(draft.events)
    connections = []
    for key in sorted({*sends, *receives}):
        out, into = sends[key], receives[key]
        for send, receive in zip(out, into, strict=False):
            counts = draft.step(send).count, draft.step(receive).count
            if counts[0] != counts[1]:
                raise draft.error(
                    receive, f"expects cnt={counts[1]}, but gets cnt={counts[0]} from {draft.says(send)}"
                )
            meets[receive] = send
        if len(out) != len(into):
            alone = out[len(into)] if len(out) > len(into) else into[len(out)]
            raise draft.error(
                alone,
                f"no {'receive' if len(out) > len(into) else 'send'} meets it: GPU {key[0]} sends {len(out)} "
                f"messages to GPU {key[1]} on channel {key[2]}, which receives {len(into)}",
            )
        connections.append((out, into))
    return meets, connections


def _order(waits: list[tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """An order that respects ``waits``, and what is left over where there is none."""
    left = [len(wait) for wait in waits]
    followers: list[list[int]] = [[] for _ in waits]
    for number, wait in enumerate(waits):
        for before in wait:
            followers[before].append(number)
    ready = [number for number, count in enumerate(left) if count == 0]
    for number in ready:
        for follower in followers[number]:
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    return ready, [number for number, count in enumerate(left) if count]


def _with_slots(
    waits: list[tuple[int, ...]], connections: list[tuple[list[int], list[int]]], slots: int
) -> list[tuple[int, ...]]:
    """``waits``, and a send waits until the message ``slots`` before it has been received."""
    held = list(waits)
    for out, into in connections:
        for send, receive in zip(out[slots:], into, strict=False):
            if receive != send:
                held[send] = (*held[send], receive)
    return held


def _deadlock(draft: Schedule, waits: list[tuple[int, ...]], stuck: list[int], where: str) -> AlgorithmError:
    """One ring of steps that wait for each other."""
    inside = set(stuck)
    seen: dict[int, int] = {}
    at = stuck[0]
    path: list[int] = []
    while at not in seen:
        seen[at] = len(path)
        path.append(at)
        at = next(before for before in waits[at] if before in inside)
    ring = path[seen[at] :]
    shown = [
        f"\n  {draft.says(event)} waits for {draft.says(ring[(i + 1) % len(ring)])}"
        for i, event in enumerate(ring[:8])
    ]
    more = f"\n  ... and so on round {len(ring)} steps" if len(ring) > 8 else ""
    first = draft.step(ring[0]).line or None
    return AlgorithmError(
        f"{draft.program.name} deadlocks{where}: {len(stuck)} steps can never run{''.join(shown)}{more}",
        location=Location(draft.program.file, first),
    )
