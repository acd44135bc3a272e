"""A program as a template: what is timed.

A message leaves when the step that sends it is reached: the step before it in its thread block is done, the
step that its depid names is done, and, where it receives first, that message has arrived. A sending step is
done when its message is handed to the connection, which carries its messages in order; a receiving one when
its message has arrived. Local steps take no time, but for reductions (received ones too), which take what the
scenario's ``reduction_rate`` says; ``endpoint_delay`` lies before each message and before a rank's exit.

A step that takes no time isn't a row of the template: what waits for it waits for what it waits for. So an
algorithm of ours that is written as XML and read again has the rows and dependencies that it had.

Not modelled: the time that a thread block takes to store a message into its connection, the number of
messages that a connection holds, loops (a call larger than a connection's buffer goes through the program
several times, overlapping; ``splits`` comes near that), and the time of local copies. The bytes of a
protocol's flags are counted where ``flags`` is set: LL sends 8 bytes for 4, LL128 128 for 120 (``device.h``
of NCCL).

A chunk is ``size / nchunksperloop`` bytes (of the output in an all-gather), rounded up, so up to
``nchunksperloop - 1`` bytes more than there are go round, or down in floor sizing.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cosim.pattern.build import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.costs import Costs
from cosim.pattern.msccl.program import REDUCES, SENDS
from cosim.pattern.msccl.schedule import Schedule
from cosim.pattern.template import Collective, Template

FLAGS = {"Simple": Fraction(1), "LL": Fraction(2), "LL128": Fraction(128, 120)}
"""Bytes on the wire for each byte of data."""
_MOST_INLINED = 24
"""Dependencies up to which a step without duration is left out of the template."""

REDUCED_LIMIT = 1 << 14
"""Steps up to which dependencies that others imply are left out."""

Wait = tuple[int, int]
"""A row (ranks' entries first) and the kind of dependency on it."""


def program_template(
    plan: Schedule, collective: Collective, size_bytes: int, costs: Costs, *, flags: bool = False
) -> Template:
    """The template of a program whose data has been proved; rows level by level, by GPU and thread block."""
    program = plan.program
    n = len(program.gpus)
    whole = size_bytes * n if collective is Collective.ALL_GATHER else size_bytes
    chunk_bytes = costs.share(whole, program.num_chunks)
    factor = FLAGS[program.protocol] if flags else Fraction(1)
    rows = _Rows(n, reduces=len(plan.events) <= REDUCED_LIMIT)
    done: list[frozenset[Wait]] = [frozenset()] * len(plan.events)
    for event in plan.order:
        step, at = plan.step(event), plan.events[event]
        size = step.count * chunk_bytes
        peer = program.gpus[at.gpu].blocks[at.block].send
        channel = program.gpus[at.gpu].blocks[at.block].channel
        before: set[Wait] = set()
        for wait in plan.waits[event]:
            before |= {(rows.sent[wait], COMPLETION)} if wait == plan.meets[event] else done[wait]
        waits = rows.least(before) or frozenset({(at.gpu, COMPLETION)})
        delay = costs.reduction_ps(size) if step.kind in REDUCES else 0
        if delay or (step.kind not in SENDS and len(waits) > _MOST_INLINED):
            waits = frozenset({(rows.add(at.gpu, at.gpu, 0, delay, 0, waits), COMPLETION)})
        if step.kind in SENDS:
            wire = -(-size * factor.numerator // factor.denominator)
            row = rows.add(at.gpu, peer, wire, costs.endpoint_delay_ps, channel, waits)
            rows.sent[event] = row
            waits = frozenset({(row, START)})
        done[event] = waits
    last: list[set[Wait]] = [{(gpu, COMPLETION)} for gpu in range(n)]
    for event, at in enumerate(plan.events):
        if at.index + 1 == len(program.gpus[at.gpu].blocks[at.block].steps):
            last[at.gpu] |= done[event]
    return rows.template(
        f"msccl {program.name}", collective, size_bytes, [rows.least(each) for each in last],
        costs.endpoint_delay_ps,
    )  # fmt: skip


class _Rows:
    """Rows as they are found, ranks' entries being rows 0..n-1; each with the level that it stands on."""

    def __init__(self, num_ranks: int, *, reduces: bool) -> None:
        self.num_ranks, self.reduces = num_ranks, reduces
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.waits: list[frozenset[Wait]] = []
        self.level: list[int] = [0] * num_ranks
        self.sent: dict[int, int] = {}
        """The row of each event that sends."""
        # For each row the rows that must have started, or completed, for it to start.
        self._started: list[int] = [1 << rank for rank in range(num_ranks)]
        self._completed: list[int] = [0] * num_ranks

    def add(self, src: int, dst: int, size: int, delay: int, channel: int, waits: frozenset[Wait]) -> int:
        row = self.num_ranks + len(self.rows)
        self.rows.append((src, dst, size, delay, channel))
        self.waits.append(waits)
        self.level.append(1 + max(self.level[wait] for wait, _ in waits))
        if self.reduces:
            started, completed = 1 << row, 0
            for wait, kind in waits:
                started |= self._started[wait]
                completed |= self._completed[wait] | (1 << wait if kind == COMPLETION else 0)
            self._started.append(started)
            self._completed.append(completed)
        return row

    def least(self, waits: set[Wait]) -> frozenset[Wait]:
        """Those of ``waits`` that no other of them implies."""
        if len(waits) < 2 or not self.reduces:
            return frozenset(waits)
        # Latest first: an earlier row can't imply a later one.
        kept: list[Wait] = []
        started = completed = 0
        for wait, kind in sorted(waits, key=lambda w: (-w[0], w[1])):
            if (completed if kind == COMPLETION else started) >> wait & 1:
                continue
            kept.append((wait, kind))
            started |= self._started[wait]
            completed |= self._completed[wait] | (1 << wait if kind == COMPLETION else 0)
        return frozenset(kept)

    def template(
        self, name: str, collective: Collective, size_bytes: int, last: list[frozenset[Wait]], exit_delay: int
    ) -> Template:
        n = self.num_ranks
        order = sorted(range(len(self.rows)), key=lambda row: (self.level[n + row], *self.rows[row][:2], row))
        place = [*range(n), *([0] * len(order))]
        for position, row in enumerate(order):
            place[n + row] = n + position
        blocks = [entries(n)]
        start = 0
        while start < len(order):
            level = self.level[n + order[start]]
            stop = start
            while stop < len(order) and self.level[n + order[stop]] == level:
                stop += 1
            those = order[start:stop]
            src, dst, size, delay, channel = zip(*(self.rows[row] for row in those), strict=True)
            distance, kind = _distances([self.waits[row] for row in those], place, n + start)
            blocks.append(Block(len(those), src, dst, distance, kind, size, delay, channel=channel))
            start = stop
        end = n + len(order)
        distance, kind = _distances(last, place, end)
        blocks.append(exits(n, distance, kind, exit_delay))
        return assemble(name, collective, n, size_bytes, blocks, num_chunks=0, owner=np.empty(0, np.int32))


def _distances(
    waits: list[frozenset[Wait]], place: list[int], base: int
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Distances back for rows ``base``, ``base + 1`` ...: completions first, each kind padded with 0."""
    kinds = (COMPLETION, START)
    each = [[sorted(place[row] for row, its in wait if its == kind) for kind in kinds] for wait in waits]
    widths = [max(len(those[kind]) for those in each) for kind in kinds]
    distance = np.zeros((len(waits), sum(widths)), np.int64)
    for offset, those in enumerate(each):
        for kind in kinds:
            first = kind * widths[COMPLETION]
            distance[offset, first : first + len(those[kind])] = (
                base + offset - np.array(those[kind], np.int64)
            )
    return distance, (COMPLETION,) * widths[COMPLETION] + (START,) * widths[START]
