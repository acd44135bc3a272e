"""A plan of ours as an MSCCL program: messages onto connections, connections onto thread blocks.

Each connection has a thread block at its source that sends and one at its target that receives, in the order
of levels; where nothing is changed by it, the block that sends to a peer also receives (from the same peer,
if it can). A message's dependencies become the order within a block, or ``depid`` on a step of another; more
than one need a ``nop`` each. Reductions into one chunk, which our engine takes in any order, follow each
other.

What XML can't say: delays (the scenario that reads it has its own), that a send waits until the block's own
earlier message *arrived* (it waits until that is sent), and messages whose chunks don't lie side by side in
MSCCL's order (they become several). The program is read back and compared, so that nothing is lost unsaid.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from cosim.errors import AlgorithmError
from cosim.formats.msccl.cells import Places, Regions
from cosim.formats.msccl.program import GpuProgram, MscclProgram, Place, Step, ThreadBlock
from cosim.formats.msccl.program_template import program_template
from cosim.formats.msccl.prove import prove_schedule
from cosim.formats.msccl.schedule import schedule
from cosim.pattern.assemble import COMPLETION
from cosim.pattern.costs import Costs
from cosim.pattern.plan import Plan
from cosim.pattern.rows import Rows, Wait, add_template
from cosim.pattern.template import REDUCE, Collective, Template


@dataclass(frozen=True, eq=False)
class Lowered:
    """The program, what was said (in normal form), what comes back when it is read, and what differs."""

    program: MscclProgram
    said: Template
    back: Template
    differences: tuple[str, ...]


@dataclass(eq=False)
class _StepPiece:
    """One step's part of a message: where it is read and stored, and which rows it waits for."""

    row: int
    src: Place
    dst: Place
    count: int
    reduce: bool


@dataclass(eq=False)
class _BlockSteps:
    """A thread block as it is made: items are (level, 0 send or 1 receive, piece)."""

    rank: int
    send: int
    recv: int
    channel: int
    items: list[tuple[int, int, _StepPiece]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


Key = tuple[int, int, int]
"""A step: its piece's row, the piece's number in it, and 0 for the send or 1 for the receive."""


def lower_plan(plan: Plan, *, name: str, protocol: str = "Simple") -> Lowered:
    """The program of a plan of one chunk.

    Raises
    ------
    AlgorithmError
        Several chunks, a collective or data that XML has no words for, or too many messages.
    """
    if len(plan.chunks) != 1:
        raise AlgorithmError(
            f"an operation of {len(plan.chunks)} chunks can't be said in MSCCL XML", hint="splits: 1"
        )
    phases = plan.chunks[0]
    if any(not phase.template.num_chunks for phase in phases) or plan.collective in (
        Collective.BARRIER,
        Collective.SEND_RECV,
    ):
        raise AlgorithmError(
            f"{plan.algorithm}: what data the messages of {plan.collective.value} carry isn't known"
        )
    if any(phase.template.num_scratch for phase in phases):
        raise AlgorithmError(f"{plan.algorithm}: what is received into scratch isn't written to MSCCL XML")
    n = plan.num_ranks
    rows = Rows(n, reduces=True)
    regions = Regions(plan, phases)
    entry = [frozenset({(rank, COMPLETION)}) for rank in range(n)]
    for phase in phases:
        for group in phase.groups.tolist():
            cells = regions.enter(phase, group)
            ends = add_template(rows, phase.template, group, [entry[rank] for rank in group], cells)
            for rank, end in zip(group, ends, strict=True):
                entry[rank] = rows.least(set(end) | {(rank, COMPLETION)})
    first = phases[0].template
    places = Places(plan, regions, first.owner.tolist())
    pieces = [_pieces(rows, row, places) for row in range(len(rows.rows))]
    said = rows.template(name, plan.collective, plan.size_bytes, rows.exits(entry), 0)
    best: Lowered | None = None
    # A thread block that both sends and receives has one order of both, which may add waits;
    # one for each adds none, but there are twice as many. What differs least is taken.
    for merged in (True, False):
        program = _Lowering(rows, pieces, plan, places, merged=merged).program(name, protocol)
        lowered = _read_back(program, plan, said, sum(len(each) > 1 for each in pieces), _late(rows, entry))
        if best is None or len(lowered.differences) < len(best.differences):
            best = lowered
        if not lowered.differences:
            break
    assert best is not None
    return best


def _pieces(rows: Rows, row: int, places: Places) -> list[_StepPiece]:
    """A message as runs of chunks that lie side by side at both ends."""
    src, dst = rows.rows[row][:2]
    cells, action = rows.data[row]
    found: list[_StepPiece] = []
    for cell in cells:
        out, into = places(src, cell), places(dst, cell)
        # A step copies one run of chunks: what lies side by side at both ends is one step, else there are
        # more.
        last = found[-1] if found else None
        if (
            last is not None
            and (last.src[0], last.src[1] + last.count) == out
            and (last.dst[0], last.dst[1] + last.count) == into
        ):
            last.count += 1
        else:
            found.append(_StepPiece(row, out, into, 1, action == REDUCE))
    return found


def _late(rows: Rows, last: list[frozenset[Wait]]) -> int:
    """Messages and exits that wait until an earlier message of their own rank has arrived elsewhere."""
    n = rows.num_ranks
    each = [*((rows.rows[row][0], waits) for row, waits in enumerate(rows.waits)), *enumerate(last)]
    return sum(
        any(kind == COMPLETION and wait >= n and rows.rows[wait - n][1] != rank for wait, kind in waits)
        for rank, waits in each
    )


def _read_back(program: MscclProgram, plan: Plan, said: Template, split: int, late: int) -> Lowered:
    """Prove the program, make its template, and say what differs from what was to be said."""
    order = schedule(program)
    prove_schedule(order, plan.collective, root=_root(plan))
    back = program_template(order, plan.collective, plan.size_bytes, Costs())
    differences = []
    if split:
        differences.append(f"{split} messages whose chunks don't lie side by side: several steps each")
    if late:
        differences.append(
            f"{late} messages and exits that wait for an own message's arrival: they wait for its start"
        )
    if not split and not late:
        if not all(np.array_equal(getattr(said, c), getattr(back, c)) for c in ("src", "dst", "channel")):
            differences.append("dependencies: messages on other levels")
        else:
            sizes = int((said.bytes != back.bytes).sum())
            if sizes:
                differences.append(
                    f"{sizes} messages' sizes: chunks are {plan.size_bytes} bytes in equal parts"
                )
            ours, theirs = _waits(said), _waits(back)
            more = sum(one != two for one, two in zip(ours, theirs, strict=True))
            if more:
                differences.append(f"{more} messages and exits that wait for others than they did")
    return Lowered(program, said, back, tuple(differences))


def _waits(template: Template) -> list[tuple[tuple[int, int], ...]]:
    """(distance, kind) of what each row waits for."""
    ptr = template.dep_ptr.tolist()
    each = list(zip(template.dep_distance.tolist(), template.dep_kind.tolist(), strict=True))
    return [tuple(each[start:stop]) for start, stop in pairwise(ptr)]


def _root(plan: Plan) -> int:
    owner = plan.chunks[0][0].template.owner
    return int(owner[0]) if plan.collective is Collective.BROADCAST else 0


class _Lowering:
    """Puts pieces onto thread blocks."""

    def __init__(
        self, rows: Rows, pieces: list[list[_StepPiece]], plan: Plan, places: Places, *, merged: bool
    ) -> None:
        self.rows, self.pieces, self.plan, self.places, self.n = rows, pieces, plan, places, plan.num_ranks
        sends: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        receives: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for src, dst, channel in sorted({(row[0], row[1], row[4]) for row in rows.rows}):
            sends[src, channel].append(dst)
            receives[dst, channel].append(src)
        self.blocks: list[list[_BlockSteps]] = [[] for _ in range(self.n)]
        self._sender: dict[tuple[int, int, int], _BlockSteps] = {}
        self._receiver: dict[tuple[int, int, int], _BlockSteps] = {}
        for rank, channel in sorted({*sends, *receives}):
            out, into = sends[rank, channel], receives[rank, channel]
            pairs: dict[int, int] = {}
            if merged:
                pairs = {peer: peer for peer in out if peer in into}
                alone = (peer for peer in into if peer not in pairs)
                pairs |= dict(zip((peer for peer in out if peer not in pairs), alone, strict=False))
            for peer in out:
                block = self._block(rank, peer, pairs.get(peer, -1), channel)
                self._sender[rank, peer, channel] = block
                if peer in pairs:
                    self._receiver[pairs[peer], rank, channel] = block
            for peer in into:
                if peer not in pairs.values():
                    self._receiver[peer, rank, channel] = self._block(rank, -1, peer, channel)
        self._place()

    def _block(self, rank: int, send: int, recv: int, channel: int) -> _BlockSteps:
        self.blocks[rank].append(_BlockSteps(rank, send, recv, channel))
        return self.blocks[rank][-1]

    def _place(self) -> None:
        """Every piece's send and receive into its block, in the order of levels."""
        for row in self.rows.order():
            src, dst, _, _, channel = self.rows.rows[row]
            level = self.rows.level[self.n + row]
            for piece in self.pieces[row]:
                self._sender[src, dst, channel].items.append((level, 0, piece))
                self._receiver[src, dst, channel].items.append((level, 1, piece))
        for blocks in self.blocks:
            for block in blocks:
                block.items.sort(key=lambda item: item[:2])

    def program(self, name: str, protocol: str) -> MscclProgram:
        """The program: steps written twice, the second time with numbers that nops have moved."""
        needs = self._needs()
        number = {
            id(item[2]) * 2 + item[1]: (position, index)
            for blocks in self.blocks
            for position, block in enumerate(blocks)
            for index, item in enumerate(block.items)
        }
        waits: dict[int, list[int]] = {}
        for key, before in needs.items():
            mine = number[key]
            latest: dict[int, int] = {}
            for other in before:
                position, index = number[other]
                if position == mine[0]:
                    if index >= mine[1]:
                        raise AlgorithmError(f"{name}: a thread block would wait for its own later step")
                    continue
                # A thread block's steps are in order: of those that are waited for, its last tells for all.
                if position not in latest or number[latest[position]][1] < index:
                    latest[position] = other
            waits[key] = [latest[position] for position in sorted(latest)]
        signals = {other for before in waits.values() for other in before}
        at: dict[int, tuple[int, int]] = {}
        for blocks in self.blocks:
            for position, block in enumerate(blocks):
                step = 0
                for _, way, piece in block.items:
                    key = id(piece) * 2 + way
                    # A step waits for one other; for each further one a nop stands before it, and moves what
                    # follows.
                    step += max(1, len(waits.get(key, ())))
                    at[key] = position, step - 1
        gpus = []
        for rank, blocks in enumerate(self.blocks):
            made = [
                ThreadBlock(
                    position, block.send, block.recv, block.channel, self._steps(block, waits, at, signals)
                )
                for position, block in enumerate(blocks)
            ]
            i, o, s = self.places.buffers(rank)
            gpus.append(GpuProgram(i, o, s, (*made, *self._own(rank, len(made)))))
        channels = 1 + max((row[4] for row in self.rows.rows), default=0)
        in_place = self.plan.collective is not Collective.ALL_TO_ALL
        return MscclProgram(
            name, self.plan.collective, protocol, channels, self.places.num_chunks, in_place, not in_place,
            tuple(gpus),
        )  # fmt: skip

    def _steps(
        self,
        block: _BlockSteps,
        waits: dict[int, list[int]],
        at: dict[int, tuple[int, int]],
        signals: set[int],
    ) -> tuple[Step, ...]:
        steps = []
        for _, way, piece in block.items:
            key = id(piece) * 2 + way
            before = [at[other] for other in waits.get(key, ())]
            steps += [Step("nop", ("i", -1), ("o", -1), 0, each) for each in before[:-1]]
            kind = "s" if way == 0 else "rrc" if piece.reduce else "r"
            src = piece.dst if kind == "rrc" else piece.src
            steps.append(
                Step(kind, src, piece.dst, piece.count, before[-1] if before else None, key in signals)
            )
        return tuple(steps)

    def _own(self, rank: int, number: int) -> list[ThreadBlock]:
        """What an all-to-all's rank has for itself goes from input to output."""
        if self.plan.collective is not Collective.ALL_TO_ALL:
            return []
        share = self.places.share
        step = Step("cpy", ("i", rank * share), ("o", rank * share), share)
        return [ThreadBlock(number, -1, -1, 0, (step,))]

    def _needs(self) -> dict[int, list[int]]:
        """For each send and receive the others of its rank that it waits for."""
        n = self.n
        needs: dict[int, list[int]] = {}
        reduced: dict[tuple[int, Place], int] = {}
        for row in self.rows.order():
            src, dst = self.rows.rows[row][:2]
            before = []
            for wait, kind in sorted(self.rows.waits[row]):
                if wait < n:
                    continue
                other = self.rows.rows[wait - n]
                arrived = kind == COMPLETION and other[1] == src
                if not arrived and other[0] != src:
                    raise AlgorithmError(f"rank {src} would wait for what it can't see")
                last = self.pieces[wait - n][-1]
                before += [id(last) * 2 + int(arrived)]
            for piece in self.pieces[row]:
                needs[id(piece) * 2] = before
                if piece.reduce:
                    receive = id(piece) * 2 + 1
                    chunks = [(dst, (piece.dst[0], piece.dst[1] + k)) for k in range(piece.count)]
                    needs[receive] = sorted({reduced[chunk] for chunk in chunks if chunk in reduced})
                    reduced.update(dict.fromkeys(chunks, receive))
        return needs
