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

from cosim.formats.msccl.program import REDUCES, SENDS
from cosim.pattern.rows import REDUCED_LIMIT, Rows, Wait
from cosim.formats.msccl.schedule import Schedule
from cosim.pattern.assemble import COMPLETION, START
from cosim.pattern.costs import Costs
from cosim.pattern.template import Collective, Template

FLAGS = {"Simple": Fraction(1), "LL": Fraction(2), "LL128": Fraction(128, 120)}
"""Bytes on the wire for each byte of data."""
_MOST_INLINED = 24
"""Dependencies up to which a step without duration is left out of the template."""


def program_template(
    plan: Schedule, collective: Collective, size_bytes: int, costs: Costs, *, flags: bool = False
) -> Template:
    """The template of a program whose data has been proved; rows level by level, by GPU and thread block."""
    program = plan.program
    n = len(program.gpus)
    whole = size_bytes * n if collective is Collective.ALL_GATHER else size_bytes
    chunk_bytes = costs.share(whole, program.num_chunks)
    factor = FLAGS[program.protocol] if flags else Fraction(1)
    rows = Rows(n, reduces=len(plan.events) <= REDUCED_LIMIT)
    done: list[frozenset[Wait]] = [frozenset()] * len(plan.events)
    for event in plan.order:
        step, at = plan.step(event), plan.events[event]
        size = step.count * chunk_bytes
        peer = program.gpus[at.gpu].blocks[at.block].send
        channel = program.gpus[at.gpu].blocks[at.block].channel
        before: set[Wait] = {(at.gpu, COMPLETION)} if at.index == 0 else set()
        for wait in plan.waits[event]:
            before |= {(rows.sent[wait], COMPLETION)} if wait == plan.meets[event] else done[wait]
        waits = rows.least(before)
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
