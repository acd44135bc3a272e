"""The proof of an MSCCL program: its data, exactly, and every order in which its steps may run.

*Order.* A step happens after the one before it in its thread block, the one that its depid names, and, where
it receives, the send that it meets; nothing else is relied on. Each thread block knows, as a vector clock,
which steps of every other have happened (Mattern, "Virtual time and global states of distributed systems",
1989). Two steps that touch a chunk of a buffer, one of them to write, must be ordered: else it is a race, and
refused. Reductions into one chunk race too: GPUs' thread blocks don't reduce atomically.

*Values.* As all conflicting accesses are ordered, one replay stands for all. A chunk holds a piece of
somebody's data and the set of GPUs that contributed to it; reducing two pieces, or a contribution twice,
spoils it, and says where. What a message carries is read when it is sent and stored when it is received.

At the end each chunk that the collective promises must hold its piece from every contributor. In place and
out of place are proved each, where the file says it is for both.

Not proved: that the GPU's buffers are large enough for what it declares, thread blocks against the number of
its multiprocessors (all must run at once), and sizes that ``minBytes`` and ``maxBytes`` exclude.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from cosim.errors import AlgorithmError, Location
from cosim.formats.msccl.program import RECEIVES, REDUCES, SENDS, STORES, MscclProgram
from cosim.formats.msccl.promise import Cell, Promise, promise
from cosim.formats.msccl.schedule import Schedule, schedule
from cosim.pattern.template import Collective

CLOCK_LIMIT = 1 << 27
"""Entries of all vector clocks: steps times thread blocks."""


@dataclass(frozen=True, slots=True)
class _Data:
    """A piece and who contributed to it; ``spoiled`` says how it was, where it was."""

    piece: int
    of: frozenset[int]
    spoiled: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proved; ``str`` says it."""

    program: MscclProgram
    collective: Collective
    ways: tuple[str, ...]
    steps: dict[str, int]
    num_messages: int
    num_channels: int
    slots: int

    def __str__(self) -> str:
        p = self.program
        most = max(len(gpu.blocks) for gpu in p.gpus)
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.steps.items()))
        scratch = max(gpu.s_chunks for gpu in p.gpus)
        lines = [
            f"proved: {p.name}, {self.collective.value} over {len(p.gpus)} GPUs, {' and '.join(self.ways)}",
            f"  {p.num_chunks} chunks, {scratch} of scratch; {self.num_messages} messages on "
            f"{self.num_channels} channel{'s' if self.num_channels != 1 else ''} ({p.protocol})",
            f"  {p.num_blocks} thread blocks, at most {most} on a GPU; {p.num_steps} steps: {kinds}",
            f"  every order of steps gives this result; a connection need hold no more than {self.slots} "
            f"message{'s' if self.slots > 1 else ''}",
        ]
        if p.ignored:
            lines.append(f"  not read: {', '.join(p.ignored)}")
        return "\n".join(lines)


def prove_program(program: MscclProgram, collective: Collective | None = None, *, root: int = 0) -> Proof:
    """Refuse a program that doesn't do what its collective (or ``collective``) promises.

    Raises
    ------
    AlgorithmError
        A deadlock, a race, or a wrong result: with file, line, GPU, thread block and step.
    """
    return prove_schedule(schedule(program), collective, root=root)


def prove_schedule(plan: Schedule, collective: Collective | None = None, *, root: int = 0) -> Proof:
    """As :func:`prove_program`, for one whose schedule is known."""
    program = plan.program
    what = collective_of(program, collective)
    if len(plan.events) * program.num_blocks > CLOCK_LIMIT:
        raise AlgorithmError(
            f"{program.name}: {len(plan.events)} steps of {program.num_blocks} thread blocks are more than "
            "is proved",
            location=Location(program.file),
        )
    ways = [(way, flag) for way, flag, given in (
        ("in place", True, program.in_place), ("out of place", False, program.out_of_place)
    ) if given] or [("out of place", False)]  # fmt: skip
    for _, in_place in ways:
        _MemoryReplay(plan, promise(program, what, in_place=in_place, root=root)).run()
    kinds = Counter(block_step.kind for gpu in program.gpus for tb in gpu.blocks for block_step in tb.steps)
    sends = sum(count for kind, count in kinds.items() if kind in SENDS)
    channels = {
        tb.channel
        for gpu in program.gpus
        for tb in gpu.blocks
        if any(step.kind in SENDS | RECEIVES for step in tb.steps)
    }
    return Proof(program, what, tuple(way for way, _ in ways), dict(kinds), sends, len(channels), plan.slots)


def collective_of(program: MscclProgram, collective: Collective | None) -> Collective:
    """What the program is for: what it says itself, or, where it says custom, what it is asked to be.

    Raises
    ------
    AlgorithmError
        Neither says, or the two differ.
    """
    if program.collective is None and collective is None:
        raise AlgorithmError(
            f"{program.name} is for a custom collective, and nothing says which",
            location=Location(program.file, 1, '<algo> coll="custom"'),
            hint="name one of all_reduce, all_gather, reduce_scatter, all_to_all, broadcast",
        )
    if program.collective is not None and collective not in (None, program.collective):
        assert collective is not None
        raise AlgorithmError(
            f"{program.name} is an {program.collective.value}, and is to carry an {collective.value}",
            location=Location(program.file, 1, "<algo> coll"),
        )
    found = program.collective or collective
    assert found is not None
    return found


class _MemoryReplay:
    """Values and clocks of every GPU's memory while the steps run in one order."""

    def __init__(self, plan: Schedule, due: Promise) -> None:
        self.plan, self.due = plan, due
        self.values: dict[Cell, _Data] = {
            cell: _Data(piece, frozenset([cell[0]])) for cell, piece in due.start.items()
        }
        self.written: dict[Cell, int] = {}
        self.read: dict[Cell, list[int]] = {}
        blocks = sorted({(event.gpu, event.block) for event in plan.events})
        number = {block: position for position, block in enumerate(blocks)}
        self.block_of = [number[event.gpu, event.block] for event in plan.events]
        self.clock = np.full((len(plan.events), max(1, len(blocks))), -1, np.int32)
        self.carried: dict[int, list[_Data]] = {}

    def run(self) -> None:
        """Replay all steps, then look at the result."""
        for event in self.plan.order:
            clock = self.clock[event]
            for before in self.plan.waits[event]:
                np.maximum(clock, self.clock[before], out=clock)
            clock[self.block_of[event]] = self.plan.events[event].index
            self._step(event)
        self._check_result()

    def _step(self, event: int) -> None:
        step = self.plan.step(event)
        gpu = self.plan.events[event].gpu
        if step.kind == "nop":
            return
        got = self.carried.pop(self.plan.meets[event], []) if step.kind in RECEIVES else []
        moved = []
        for offset in range(step.count):
            own = None
            if step.kind in REDUCES or step.kind in ("s", "cpy"):
                own = self._get(event, self.due.cell(gpu, step.src, offset))
            value = got[offset] if got else own
            target = self.due.cell(gpu, step.dst, offset)
            if step.kind == "re":
                own = self._get(event, target)
            assert value is not None
            if step.kind in REDUCES:
                assert own is not None
                value = self._reduced(event, value, own)
            if step.kind in STORES:
                self._put(event, target, value)
            moved.append(value)
        if step.kind in SENDS:
            self.carried[event] = moved

    def _after(self, event: int, before: int) -> bool:
        at = self.plan.events[before]
        return bool(self.clock[event, self.block_of[before]] >= at.index)

    def _get(self, event: int, cell: Cell) -> _Data:
        writer = self.written.get(cell)
        if writer is not None and not self._after(event, writer):
            self._race(event, "reads", writer, "writes", cell)
        if cell not in self.values:
            self._refuse_empty(event, cell)
        self.read.setdefault(cell, []).append(event)
        return self.values[cell]

    def _put(self, event: int, cell: Cell, value: _Data) -> None:
        writer = self.written.get(cell)
        if writer is not None and not self._after(event, writer):
            self._race(event, "writes", writer, "writes", cell)
        for reader in self.read.pop(cell, ()):
            if reader != event and not self._after(event, reader):
                self._race(event, "writes", reader, "reads", cell)
        self.values[cell] = value
        self.written[cell] = event

    def _reduced(self, event: int, one: _Data, two: _Data) -> _Data:
        if one.spoiled or two.spoiled:
            return one if one.spoiled else two
        if one.piece != two.piece:
            return _Data(
                one.piece, one.of, f"{self.plan.says(event)} adds chunk {one.piece} to chunk {two.piece}"
            )
        twice = one.of & two.of
        if twice:
            return _Data(
                one.piece, one.of, f"{self.plan.says(event)} counts twice what comes from {_gpus(twice)}"
            )
        return _Data(one.piece, one.of | two.of)

    def _race(self, event: int, does: str, other: int, did: str, cell: Cell) -> NoReturn:
        raise self.plan.error(
            event,
            f"a race for {_named(cell)}: it {does} what {self.plan.says(other)} {did}, and nothing says "
            "which comes first",
            "make the later of the two wait for the other with depid and deps",
        )

    def _refuse_empty(self, event: int, cell: Cell) -> NoReturn:
        for other in range(len(self.plan.events)):
            step = self.plan.step(other)
            if self.plan.events[other].gpu == cell[0] and step.kind in STORES:
                places = (self.due.cell(cell[0], step.dst, offset) for offset in range(step.count))
                if cell in places and other != event:
                    raise self.plan.error(
                        event,
                        f"a race for {_named(cell)}: it reads it before anything is there; "
                        f"{self.plan.says(other)} writes it, and nothing makes it wait for that",
                        "make it wait for that step with depid and deps",
                    )
        raise self.plan.error(event, f"reads {_named(cell)}, which nothing ever writes")

    def _check_result(self) -> None:
        for cell, piece in self.due.due.items():
            value = self.values.get(cell)
            writer = self.written.get(cell)
            last = f"last written by {self.plan.says(writer)}" if writer is not None else "never written"
            said = None
            wanted = self.due.contributors.get(piece, frozenset())
            if value is None:
                said = "is empty"
            elif value.spoiled:
                said = f"is wrong: {value.spoiled}"
            elif value.piece != piece:
                said = f"holds chunk {value.piece} of the data where chunk {piece} is due"
            elif value.of != wanted:
                said = f"lacks what comes from {_gpus(wanted - value.of)}"
            if said is not None:
                program = self.plan.program
                line = self.plan.step(writer).line if writer is not None else program.gpus[cell[0]].line
                raise AlgorithmError(
                    f"{program.name} {self.due.collective.value} over {len(program.gpus)} GPUs: "
                    f"GPU {cell[0]} ends with a wrong {_named(cell)}: it {said}; {last}",
                    location=Location(program.file, line or None),
                )


def _named(cell: Cell) -> str:
    names = {"i": "input", "o": "output", "s": "scratch"}
    return f"chunk {cell[2]} of GPU {cell[0]}'s {names[cell[1]]}"


def _gpus(gpus: frozenset[int]) -> str:
    shown = ", ".join(str(gpu) for gpu in sorted(gpus)[:8])
    more = f" and {len(gpus) - 8} more" if len(gpus) > 8 else ""
    return f"GPU{'s' if len(gpus) > 1 else ''} {shown}{more}"
