"""Ranks as columns, compiled: how many rows each has of what it has some of, and where they begin."""

from __future__ import annotations

from cosim.engine.state import NONE, State
from cosim.network.flows import I32, I64
from cosim.network.jit import compiled

CELLS, SLOTS, LANES, MEMBERS, PORTS = range(5)
"""What a rank has rows of, in the order of ``counts`` and ``first`` here."""


@compiled
def count_rows(
    state: State, program0: int, program_of: I32, slots: int, groups: I32, end_first: I32, counts: I64
) -> None:
    """Add up the rows of a job's ranks. Of each of its programs, the first of which is ``program0``: how many
    ``groups`` its collectives name, and its ends of messages, from ``end_first[program]`` on.
    """
    for rank in range(len(program_of)):
        program = program_of[rank]
        counts[CELLS] += slots * state.programs[program0 + program].ops
        counts[SLOTS] += slots
        counts[LANES] += state.programs[program0 + program].lanes
        counts[MEMBERS] += groups[program]
        counts[PORTS] += end_first[program + 1] - end_first[program]


@compiled
def write_ranks(
    state: State,
    job: int,
    program0: int,
    program_of: I32,
    slots: int,
    groups: I32,
    end_first: I32,
    first: I64,
    paced: bool,
) -> None:
    """Write a job's ranks, whose rows of tables begin at ``first``; the job's own row is there. What no rank
    has met yet is unknown, not row 0 of a table.
    """
    cell = first[CELLS]
    slot = first[SLOTS]
    lane = first[LANES]
    member = first[MEMBERS]
    port = first[PORTS]
    for number in range(len(program_of)):
        program = program_of[number]
        rank = state.ranks[state.jobs[job].rank0 + number]
        rank.program = program0 + program
        rank.job = job
        rank.number = number
        rank.iteration = NONE
        rank.finish = NONE
        rank.cell0 = cell
        rank.pace0 = cell if paced else NONE
        rank.slot0 = slot
        rank.lane0 = lane
        rank.ref0 = member
        rank.port0 = port
        slot += slots
        for _ in range(slots * state.programs[rank.program].ops):
            state.cells[cell].started = NONE
            cell += 1
        for _ in range(state.programs[rank.program].lanes):
            state.lanes[lane].busy = NONE
            lane += 1
        for _ in range(groups[program]):
            state.members[member].comm = NONE
            state.members[member].position = NONE
            member += 1
        port += end_first[program + 1] - end_first[program]
    first_trait = state.jobs[job].trait0
    for at in range(first_trait, first_trait + state.jobs[job].iterations):
        state.traits[at] = NONE
