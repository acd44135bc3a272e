"""Whether a workload can end: what is certain before anything is simulated.

:func:`check` looks at each program alone (numbers, fields, cycles), then at what ranks do together:
collectives of a group in equal number, kind and size, in equal order where dependencies fix one; a RECV for
each SEND. What depends on timing (which free operation starts first, messages that overtake) is the engine's
to find.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cosim.errors import WorkloadError
from cosim.units import LARGEST
from cosim.workload.dependencies import find_cycle
from cosim.workload.match_collectives import check_collectives
from cosim.workload.match_messages import check_messages
from cosim.workload.operation import ACCESSES
from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program, Workload
from cosim.workload.table import OperationTable, TablePrograms

COLLECTIVES = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "barrier", "send_recv"}
)
"""Names that an operation may use; those of ``cosim.pattern.template.Collective``."""


MOST_LAG = 1000
"""A rank keeps room for twice as many iterations."""


def check(workload: Workload) -> None:
    """Refuse a workload that can't be run to its end.

    Raises
    ------
    WorkloadError
        Ranks without a program, numbers out of range, a cycle (names its operations), a group without the
        rank.
    MismatchError
        Ranks of a group that do unequal collectives; a SEND and a RECV of unequal size.
    StallError
        A SEND without a RECV or the reverse; a line for each who would wait.
    """
    _check_ranks(workload)
    if not (isinstance(workload.programs, TablePrograms) and _is_right(workload.table, workload.mesh)):
        for program in workload.programs:
            check_program(program, workload.mesh)
    check_collectives(workload)
    check_messages(workload)


def check_program(program: Program, mesh: DeviceMesh) -> None:
    """Check what can be seen in one program alone.

    Raises
    ------
    WorkloadError
        An operation that makes no sense, a dependency that isn't there, a cycle.
    """
    count = len(program.operations)
    for number, op in enumerate(program.operations):
        for other in op.deps:
            if not 0 <= other < count:
                raise _error(
                    program, number, f"depends on operation {other}; the program has 0 to {count - 1}"
                )
        if len(set(op.deps)) != len(op.deps):
            raise _error(program, number, f"names a dependency twice: {list(op.deps)}")
        for other, lag in op.lagged:
            if not 0 <= other < count or not 1 <= lag <= MOST_LAG:
                raise _error(
                    program,
                    number,
                    f"waits for operation {other} of {lag} iterations before; the program has 0 to "
                    f"{count - 1}, lags are 1 to {MOST_LAG}",
                )
        wrong = _wrong(op, mesh)
        if wrong:
            raise _error(program, number, wrong)
    cycle = find_cycle([op.deps for op in program.operations])
    if cycle:
        names = [f"op {number} {program.operations[number].name!r}" for number in cycle]
        shown = " -> ".join([*names[:8], "..." if len(names) > 8 else names[0]])
        raise WorkloadError(f"program {program.name!r}: operations that wait for each other: {shown}")


def _is_right(table: OperationTable, mesh: DeviceMesh) -> bool:
    """Whether columns say plainly that there is nothing for :func:`check_program` to refuse; no operation of
    theirs waits for a later one.
    """
    own = np.arange(len(table)) - table.first[table.program]
    row = np.repeat(np.arange(len(table)), np.diff(table.dep_first))
    ascend = (np.diff(table.dep) > 0) | (np.diff(row) > 0)
    talks, named = table.is_kind(OpKind.SEND, OpKind.RECV), table.peer >= 0
    told, alone = (np.unique(table.like[rows]).tolist() for rows in (talks & named, ~(talks & named)))
    used = [table.prototypes[k] for k in alone]
    used += [replace(table.prototypes[k], peer=Peer(0)) for k in told]
    return bool(
        (table.dep >= 0).all()
        and (table.dep < own[row]).all()
        and not len(table.lagged)
        and ascend.all()
        and (table.duration_ps >= 0).all()
        and (table.size_bytes >= 0).all()
        and (table.peer[talks] < mesh.world_size).all()
    ) and not any(_wrong(operation, mesh) for operation in used)


def _check_ranks(workload: Workload) -> None:
    world_size, program_of = workload.mesh.world_size, workload.program_of
    if world_size != len(program_of):
        raise WorkloadError(
            f"workload {workload.name!r}: the mesh has {world_size} ranks, {len(program_of)} have a program"
        )
    wrong = (program_of < 0) | (program_of >= len(workload.programs))
    if wrong.any():
        rank = int(wrong.argmax())
        raise WorkloadError(
            f"workload {workload.name!r}: rank {rank} runs program {program_of[rank]};"
            f" there are {len(workload.programs)}"
        )


def _wrong(op: Operation, mesh: DeviceMesh) -> str:
    """What is wrong with an operation's fields, or nothing."""
    if op.duration_ps < 0 or op.size_bytes < 0:
        return f"has a negative duration or size: {op.duration_ps} ps, {op.size_bytes} B"
    if op.access:
        return _wrong_access(op)
    if op.kind is OpKind.COLLECTIVE:
        if op.collective not in COLLECTIVES:
            return f"is the collective {op.collective!r}; there are: {', '.join(sorted(COLLECTIVES))}"
        return _wrong_group(op, mesh)
    if op.kind in (OpKind.SEND, OpKind.RECV):
        return _wrong_peer(op, mesh)
    return ""


def _wrong_access(op: Operation) -> str:
    if op.kind is not OpKind.MEMORY or op.access not in ACCESSES:
        return f"has the access {op.access!r}; memory operations have {' or '.join(ACCESSES)}, others none"
    return "" if op.size_bytes <= LARGEST else f"accesses {op.size_bytes} B; the largest size is {LARGEST}"


def _wrong_group(op: Operation, mesh: DeviceMesh) -> str:
    size = mesh.world_size
    if op.ranks is not None:
        if op.axes:
            return "has both axes and ranks"
        if not op.ranks or len(set(op.ranks)) != len(op.ranks):
            return f"has the group {list(op.ranks)}: it should name some ranks, each once"
        if min(op.ranks) < 0 or max(op.ranks) >= size:
            return f"has the group {list(op.ranks)}, but ranks are 0 to {size - 1}"
        size = len(op.ranks)
    elif op.axes:
        unknown = [axis for axis in op.axes if axis not in mesh.axes]
        if unknown:
            return f"is over axis {unknown[0]!r}; the mesh has {', '.join(mesh.axes)}"
        size = 1
        for axis in set(op.axes):
            size *= mesh.axes[axis]
    return "" if 0 <= op.root < size else f"has root {op.root} in a group of {size}"


def _wrong_peer(op: Operation, mesh: DeviceMesh) -> str:
    peer = op.peer
    if not 0 <= op.channel < 1 << 31:
        return f"has channel {op.channel}; channels are 0 to 2147483647"
    if peer is None or (peer.rank is None) == (peer.axis is None):
        return "needs a peer: a rank, or an axis and an offset"
    if peer.rank is not None and not 0 <= peer.rank < mesh.world_size:
        return f"has peer {peer.rank}, but ranks are 0 to {mesh.world_size - 1}"
    if peer.axis is not None and peer.axis not in mesh.axes:
        return f"has a peer along axis {peer.axis!r}; the mesh has {', '.join(mesh.axes)}"
    if peer.axis is not None and peer.offset == 0:
        return "has itself as peer: offset 0"
    return ""


def _error(program: Program, number: int, message: str) -> WorkloadError:
    op = program.operations[number]
    return WorkloadError(f"program {program.name!r}: {op.kind.value} op {number} {op.name!r} {message}")
