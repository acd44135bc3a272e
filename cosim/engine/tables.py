"""Programs and ranks as columns: written once, before a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cosim.engine.columns import NONE, EngineColumns
from cosim.engine.driven import MOST_CLASSES
from cosim.engine.flow_log import FlowLog
from cosim.engine.plans import By
from cosim.engine.program_columns import TableColumns, most_rows, source_of
from cosim.engine.programs import Naming, ReadyJob, ReadyProgram
from cosim.engine.records import JobInfo
from cosim.engine.rows import unique_rows
from cosim.errors import WorkloadError
from cosim.kernel import kernel, record
from cosim.network.flows import I32, I64, flat_table
from cosim.workload.program import Operation, OpKind, Workload

What = tuple[str, int, int, By, int | None]
"""A collective's kind, size and root, what carries it, and the priority that a process gives it."""
_FEWEST_ISSUED = 256
_OF_RANKS = "cells", "slots", "lanes", "members", "ports"
"""What each rank has rows of, as the kernel numbers it (``rank_rows``)."""


class ProgramTable(NamedTuple):
    """A program's place in the columns. ``groups``: what its collectives name, with the form that all members
    share.
    """

    number: int
    job: ReadyJob
    of_job: int
    groups: tuple[tuple[Operation, Naming], ...]

    @property
    def program(self) -> ReadyProgram:
        """The program itself."""
        return self.job.programs[self.of_job]


class Tables:
    """All programs and ranks of a run; ``rank0[job]`` is a job's first rank."""

    def __init__(self, columns: EngineColumns, flow_log: FlowLog, jobs: Sequence[ReadyJob]) -> None:
        self.columns = columns
        self._flow_log = flow_log
        self.jobs: list[ReadyJob] = []
        self.whats: dict[What, int] = {}
        self.algorithms: dict[int, By] = {}
        """The algorithm that a collective asks for, by the collective's number."""
        self.messages = MessageTable()
        self._groups: list[dict[int, tuple[tuple[Operation, Naming], ...]]] = []
        self.program0: list[int] = []
        self.rank0: list[int] = []
        self._seats: dict[int, I32] = {}
        self._pool = NONE
        for job in jobs:
            self.add(job)

    def add(self, job: ReadyJob) -> None:
        """Write one more job, which is numbered after all that are there."""
        self.jobs.append(job)
        self._seats[job.number] = job.info.endpoints
        if job.info.driven:
            self._driven_ranks(job)
        else:
            self._ranks(job, self._programs(job))

    def what(
        self,
        collective: str,
        size_bytes: int,
        root: int,
        algorithm: By = "",
        priority: int | None = None,
    ) -> int:
        """The number of a kind, size and root of collectives; and of what carries it, and its priority, where
        it says so.
        """
        key = collective, size_bytes, root, algorithm, priority
        number = self.whats.setdefault(key, len(self.whats))
        if algorithm:
            self.algorithms[number] = algorithm
        return number

    def program(self, job: int, rank: int) -> ProgramTable:
        """The program that a rank of a job runs."""
        return self.program_of_job(job, int(self.jobs[job].info.workload.program_of[rank]))

    def program_of_job(self, job: int, number: int) -> ProgramTable:
        """A job's program."""
        groups = self._groups[job].get(number, ())
        return ProgramTable(self.program0[job] + number, self.jobs[job], number, groups)

    # -- programs ------------------------------------------------------------------------------------

    def _programs(self, job: ReadyJob) -> TableColumns:
        """Write a job's programs into the columns; their ends of messages are found."""
        columns, table, slots = self.columns, job.info.workload.table, job.slots
        if len(table.lagged):
            _check_lagged(job.info.workload)
        source = source_of(table, over_fabric=job.info.memory_nodes is not None, on_units=job.info.on_units)
        first = columns.extend_all(most_rows(source, slots))
        names = "ops", "successors", "lane_base", "roots", "programs"
        rows = np.array([tuple(first[name] for name in names)], record("first_rows"))
        wrong = kernel.write_programs(columns, source, rows, slots.count)
        if wrong != NONE:
            row = int(np.searchsorted(table.dep_first, wrong, "right")) - 1
            raise _no_operation(job.info.workload, row, int(table.dep[wrong]))
        self.program0.append(first["programs"])
        self._groups.append(self._collectives(job, first["ops"]))
        return source

    def _collectives(self, job: ReadyJob, op0: int) -> dict[int, tuple[tuple[Operation, Naming], ...]]:
        """What the collectives of each program name; operations, from ``op0`` on, are told its number."""
        table, slots = job.info.workload.table, job.slots.count
        found: dict[int, tuple[tuple[Operation, Naming], ...]] = {}
        if not any(one.kind is OpKind.COLLECTIVE for one in table.prototypes):
            return found
        for number in np.unique(table.program[table.is_kind(OpKind.COLLECTIVE)]).tolist():
            program = job.programs[number]
            mine = program.collectives
            found[number] = mine.groups
            whats = [self.what(one.collective, one.size_bytes, one.root) for one in mine.kinds]
            first, length = op0 + slots * int(table.first[number]), len(program.operations)
            rows = self.columns.ops[first : first + slots * length].reshape(slots, length)
            rows["what"][:, mine.at] = np.array(whats, np.int32)[mine.kind]
            rows["ref"][:, mine.at] = mine.ref[mine.kind]
            rows["occurrence"][:, mine.at] = mine.occurrence
        return found

    # -- ranks ---------------------------------------------------------------------------------------

    def _ranks(self, job: ReadyJob, source: TableColumns) -> None:
        columns, info, world = self.columns, job.info, job.info.workload.world_size
        program0, slots = self.program0[-1], job.slots.count
        groups = np.zeros(info.workload.table.num_programs, np.int32)  # that each program's collectives name
        for number, named in self._groups[-1].items():
            groups[number] = len(named)
        of = np.ascontiguousarray(info.workload.program_of, np.int32)
        given = program0, world, of, slots, groups, source.end_first
        counts = np.zeros(len(_OF_RANKS), np.int64)
        kernel.count_rank_rows(columns, *given, counts)
        rows = dict(zip(_OF_RANKS, counts.tolist(), strict=True))
        others = {
            "ranks": world,
            "jobs": 1,
            "iteration_ends": world * info.iterations,
            "traits": info.iterations,
        }
        first = columns.extend_all(rows | others)
        if info.pace is not None:
            columns.extend("pace", columns.used("cells"))
        self.rank0.append(first["ranks"])
        one = columns.jobs[first["jobs"]]
        one["rank0"], one["end0"], one["trait0"] = first["ranks"], first["iteration_ends"], first["traits"]
        one["ranks"], one["iterations"] = world, info.iterations
        one["rendezvous"], one["open"] = info.workload.rendezvous, job.slots.open
        begins = np.array([first[name] for name in _OF_RANKS])
        kernel.write_ranks(columns, job.number, *given, begins, info.pace is not None)
        columns.ranks["device"][first["ranks"] :][:world] = self._devices(info)
        self._ports(job, source, rows["ports"])

    # -- driven jobs ---------------------------------------------------------------------------------

    def _driven_ranks(self, job: ReadyJob) -> None:
        """Ranks without a program of their own: they share the pool."""
        columns, world = self.columns, job.info.workload.world_size
        if self._pool == NONE:
            self._pool, made = columns.extend("programs", 1)
            made["op0"], made["ops"], made["lanes"] = columns.used("ops"), 0, 0
            self._slot = columns.append("slots", np.array([(0, 1)], record("rank_slot")))
            self._cell0 = columns.used("cells")
        counts = {"ranks": world, "jobs": 1, "iteration_ends": world, "traits": MOST_CLASSES}
        first = columns.extend_all(counts)
        columns.traits[first["traits"] :][:MOST_CLASSES] = NONE
        one = columns.jobs[first["jobs"]]
        one["rank0"], one["end0"], one["trait0"] = first["ranks"], first["iteration_ends"], first["traits"]
        one["ranks"], one["iterations"], one["open"] = world, 1, 1
        rows = columns.ranks[first["ranks"] :][:world]
        rows["cell0"], rows["pace0"], rows["finish"] = self._cell0, NONE, NONE
        rows["device"] = self._devices(job.info)
        rows["program"], rows["slot0"] = self._pool, self._slot
        rows["job"], rows["number"] = job.number, np.arange(world)
        rows["oldest"] = 1  # it has no iterations: all are over
        self.rank0.append(first["ranks"])
        self.program0.append(self._pool)
        self._groups.append({})

    def widen_pool(self, count: int) -> None:
        """Have room for so many more operations of driven ranks: at the end, for others may lie behind it."""
        columns, scalars = self.columns, self.columns.scalars
        program = columns.programs[self._pool]
        before = int(program["ops"])
        size = max(2 * before, before + count, _FEWEST_ISSUED)
        op0, cell0 = columns.extend("ops", size)[0], columns.extend("cells", size)[0]
        old_op, old_cell = int(program["op0"]), self._cell0
        columns.ops[op0 : op0 + before] = columns.ops[old_op : old_op + before]
        columns.cells[cell0 : cell0 + before] = columns.cells[old_cell : old_cell + before]
        free = columns.ops["waits"][op0 + before : op0 + size]
        free[:] = np.arange(before + 1, size + 1)
        free[-1] = scalars["free_op"]
        scalars["free_op"] = before
        scalars["num_free"] += size - before
        columns.programs["op0"][self._pool], columns.programs["ops"][self._pool] = op0, size
        columns.ranks["cell0"][: columns.used("ranks")][
            columns.ranks["program"][: columns.used("ranks")] == self._pool
        ] = cell0
        self._cell0 = cell0

    def bind_message(self, job: int, src: int, dst: int, size: int, channel: int) -> int:
        """One more message between endpoints: the number of its binding."""
        here, there, channels = (np.array([one], np.int32) for one in (src, dst, channel))
        return int(self._bindings(job, here, there, np.array([size], np.int64), channels)[0])

    def _devices(self, info: JobInfo) -> I32 | int:
        """The memory device of each rank, with a row of the columns."""
        if info.devices is None:
            return NONE
        devices = info.devices[info.endpoints]
        more = int(info.devices.max(initial=NONE)) + 1 - self.columns.used("free_at")
        self.columns.extend("free_at", max(more, 0))
        return devices

    def seat(self, job: int) -> None:
        """Have a job's ranks go where their endpoints are now: for what they send, and for memory."""
        info = self.jobs[job].info
        first = self.rank0[job]
        self.columns.ranks["device"][first : first + len(info.endpoints)] = self._devices(info)
        self._move_messages(job)

    def _ports(self, job: ReadyJob, source: TableColumns, count: int) -> None:
        """Say of each end of messages with whom it meets where, and what is sent from there."""
        if not count:
            return
        info, columns = job.info, self.columns
        from cosim.engine.ports import meetings_of

        found = meetings_of(info.workload, count)
        channel0, _ = columns.extend("channels", count)
        columns.channels["head"][channel0:] = NONE  # of those that are not used, too: nothing waits there
        given = self.rank0[-1], channel0, info.workload.rendezvous
        counts = np.zeros(2, np.int64)
        kernel.write_ports(columns, source, found, *given, counts)
        channels, flows = counts.tolist()
        ends = found.sender[:channels], found.receiver[:channels], found.tag[:channels]
        self.messages.channels.append((channel0, job.number, *ends))
        src, dst = (np.asarray(info.endpoints[one[:flows]], np.int32) for one in (found.source, found.target))
        binding = self._bindings(job.number, src, dst, found.size_bytes[:flows], found.channel[:flows])
        columns.ports["binding"][found.port[:flows]] = binding

    def _bindings(self, job: int, src: I32, dst: I32, size: I64, channel: I32) -> I64:
        """The flows of messages: alike ones once."""
        one, number = unique_rows(src, dst, size, channel)
        src, dst, size, channel = src[one], dst[one], size[one], channel[one]
        first, made = self.columns.extend("bindings", len(one))
        made["flows"] = made["blocks"] = 1
        made["table"] = NONE
        made["block"] = self._flow_log.blocks(_ONE_MESSAGE)
        info = self._flow_log.bind_rows(src, dst, size)
        made["info"] = np.arange(info, info + len(one))
        self.messages.bind(first, job, src, dst, size, channel)
        return np.asarray(first + number, np.int64)

    def _move_messages(self, job: int) -> None:
        """Have a job's messages go between its endpoints as they are now; it has sent none so far, or has not
        moved.
        """
        before, now = self._seats[job], self.jobs[job].info.endpoints
        if before is now:
            return
        rank_on = np.zeros(int(before.max(initial=0)) + 1, np.int64)
        rank_on[before] = np.arange(len(before))
        for number in self.messages.of(job):
            first, _, src, dst, size, channel = self.messages.bindings[number]
            src, dst = (np.asarray(now[rank_on[one]], np.int32) for one in (src, dst))
            self.messages.bindings[number] = first, job, src, dst, size, channel
            rows = self.columns.bindings[first : first + len(src)]
            rows["info"] = self._flow_log.bind_rows(src, dst, size) + np.arange(len(src))
        self._seats[job] = now


@dataclass(frozen=True, eq=False, slots=True)
class MessageTable:
    """What channels and bindings of messages stand for, job by job: those from a first number on."""

    channels: list[tuple[int, int, I32, I32, I64]] = field(default_factory=list)
    """First, job, senders, receivers, tags."""
    bindings: list[tuple[int, int, I32, I32, I64, I32]] = field(default_factory=list)
    """First, job, sources, destinations, bytes, channels."""
    _of_job: dict[int, list[int]] = field(default_factory=dict)

    def bind(self, first: int, job: int, src: I32, dst: I32, size: I64, channel: I32) -> None:
        """One more entry of ``bindings``."""
        self._of_job.setdefault(job, []).append(len(self.bindings))
        self.bindings.append((first, job, src, dst, size, channel))

    def of(self, job: int) -> list[int]:
        """Which entries of ``bindings`` are a job's."""
        return self._of_job.get(job, [])


_ONE_MESSAGE = flat_table([0], [1], [0])


def _check_lagged(workload: Workload) -> None:
    """Refuse what would wait for an operation of an iteration before that isn't there."""
    table = workload.table
    row, dep, lag = table.lagged.T
    count = np.diff(table.first)[table.program[row]]
    for at in np.flatnonzero((dep < 0) | (dep >= count) | (lag < 1))[:1].tolist():
        raise _no_operation(workload, int(row[at]), int(dep[at]))


def _no_operation(workload: Workload, row: int, dep: int) -> WorkloadError:
    table = workload.table
    number = int(table.program[row])
    program, op = workload.programs[number], row - int(table.first[number])
    return WorkloadError(
        f"program {program.name!r}: operation {op} {program.operations[op].name!r} depends on "
        f"{dep}, which is not another of its {len(program.operations)} operations"
    )
