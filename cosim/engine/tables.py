"""Programs and ranks as columns: written once, before a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.engine import state as s
from cosim.engine.columns import Columns
from cosim.engine.flow_log import FlowLog
from cosim.engine.messages import REQUEST_BYTES
from cosim.engine.ports import Ports, ports_of, unique_rows
from cosim.engine.programs import Naming, ReadyJob, ReadyProgram
from cosim.engine.records import JobInfo
from cosim.network.calendar import Records
from cosim.network.flows import I32, I64, flat_table
from cosim.workload.program import Operation, OpKind

What = tuple[str, int, int]
"""A collective's kind, size and root."""
_KIND = {OpKind.COLLECTIVE: s.COLLECTIVE, OpKind.SEND: s.SEND, OpKind.RECV: s.RECV}
_KINDS = np.array([_KIND.get(kind, s.COMPUTE) for kind in OpKind])
"""The engine's kinds, by position in ``OpKind``."""


@dataclass(frozen=True, eq=False, slots=True)
class ProgramTable:
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

    def __init__(self, columns: Columns, flow_log: FlowLog, jobs: Sequence[ReadyJob]) -> None:
        self.columns = columns
        self._flow_log = flow_log
        self.jobs = jobs
        self.whats: dict[What, int] = {}
        self.messages = MessageTable()
        self.programs: list[ProgramTable] = []
        self.program0: list[int] = []
        self.rank0: list[int] = []
        self._seats = {job.number: job.info.endpoints for job in jobs}
        for job in jobs:
            ports = self._programs(job)
            self._ranks(job, ports)
        num_ranks = columns.used("ranks")
        columns.reserve("touched", num_ranks)
        columns.reserve("begins", num_ranks)

    def program(self, job: int, rank: int) -> ProgramTable:
        """The program that a rank of a job runs."""
        return self.programs[self.program0[job] + int(self.jobs[job].info.workload.program_of[rank])]

    # -- programs ------------------------------------------------------------------------------------

    def _programs(self, job: ReadyJob) -> Ports:
        """Write a job's programs into the columns; their ends of messages."""
        columns, ready, slots = self.columns, job.programs.table, job.slots
        table = ready.table
        ops = np.zeros(len(table), s.OP)
        over_fabric = job.info.memory_nodes is not None
        ops["kind"] = np.where(table.is_access, s.REMOTE if over_fabric else s.ACCESS, _KINDS[table.kind])
        ops["duration"], ops["size"] = table.duration_ps, table.size_bytes
        ops["lane"] = ready.lane
        ops["number"] = np.arange(len(table)) - table.first[table.program]
        ports, ops["ref"] = ports_of(table, accesses=over_fabric)
        self.program0.append(len(self.programs))
        groups = self._collectives(job, ops)
        rows = ready.in_slots(slots)
        ops = ops[rows.row]
        first = columns.append("successors", rows.successor) + rows.successor_first
        ops["first"], ops["last"] = first[:-1], first[1:]
        ops["slot"], ops["waits"], ops["early"] = rows.slot, rows.waits, rows.early
        made = np.zeros(table.num_programs, s.PROGRAM)
        made["op0"] = columns.append("ops", ops) + rows.first[:-1]
        made["ops"] = np.diff(table.first)
        made["lanes"] = ready.lanes
        # All slots of a rank are ready in one lane: it has room for each operation once a slot.
        made["lane0"] = columns.append("lane_base", slots.count * ready.lane_base) + ready.lane_first
        made["roots"] = np.diff(ready.root_first)
        made["root0"] = columns.append("roots", ready.roots) + ready.root_first[:-1]
        number = columns.append("programs", made)
        self.programs += [
            ProgramTable(number + at, job, at, groups.get(at, ())) for at in range(table.num_programs)
        ]
        return ports

    def _collectives(self, job: ReadyJob, ops: Records) -> dict[int, tuple[tuple[Operation, Naming], ...]]:
        """What the collectives of each program name; ``ops`` are told their numbers."""
        table = job.programs.table.table
        found: dict[int, tuple[tuple[Operation, Naming], ...]] = {}
        mine = np.flatnonzero(table.is_kind(OpKind.COLLECTIVE))
        for number in np.unique(table.program[mine]).tolist():
            program, first = job.programs[number], int(table.first[number])
            ops["occurrence"][first : first + len(program.operations)] = program.occurrence
            groups: dict[object, int] = {}
            named: list[tuple[Operation, Naming]] = []
            for at, one in enumerate(program.operations):
                if one.kind is OpKind.COLLECTIVE:
                    what = one.collective, one.size_bytes, one.root
                    ops[first + at]["what"] = self.whats.setdefault(what, len(self.whats))
                    ops[first + at]["ref"] = groups.setdefault((one.axes, one.ranks), len(groups))
                    # It was the first to name its group: its naming stands for all that name the same.
                    if len(groups) > len(named):
                        named.append((one, program.naming[at]))
            found[number] = tuple(named)
        return found

    # -- ranks ---------------------------------------------------------------------------------------

    def _ranks(self, job: ReadyJob, ports: Ports) -> None:
        columns, info, ready = self.columns, job.info, job.programs.table
        of, world = info.workload.program_of, info.workload.world_size
        mine = self.programs[self.program0[-1] :]
        ranks = np.zeros(world, s.RANK)
        slots = job.slots.count
        lengths = {
            "cell0": ("cells", slots * np.diff(ready.table.first)),
            "slot0": ("slots", np.full(len(mine), slots)),
            "lane0": ("lanes", ready.lanes),
            "ref0": ("members", np.array([len(one.groups) for one in mine], np.int64)),
            "port0": ("ports", ports.count),
        }
        for name, (column, length) in lengths.items():
            count = length[of]
            first, rows = columns.extend(column, int(count.sum()))
            ranks[name] = first + np.cumsum(count) - count
            if column == "cells":
                rows["started"] = s.NONE
            elif column == "lanes":
                rows["busy"] = s.NONE
            # What no rank has met yet is unknown, not row 0 of a table.
            elif column != "slots":
                for name_of in rows.dtype.names or ():
                    rows[name_of] = s.NONE
        ranks["pace0"] = s.NONE
        if info.pace is not None:
            columns.extend("pace", columns.used("cells"))
            ranks["pace0"] = ranks["cell0"]
        ranks["device"] = self._devices(info)
        ranks["program"] = mine[0].number + of if mine else 0
        ranks["job"], ranks["number"] = job.number, np.arange(world)
        ranks["iteration"] = ranks["finish"] = s.NONE
        self.rank0.append(columns.append("ranks", ranks))
        ends, _ = columns.extend("iteration_ends", world * info.iterations)
        trait0, traits = columns.extend("traits", info.iterations)
        traits[:] = s.NONE
        made = np.zeros(1, s.JOB)
        made["rank0"], made["end0"], made["trait0"] = self.rank0[-1], ends, trait0
        made["ranks"], made["iterations"] = world, info.iterations
        made["rendezvous"], made["open"] = info.workload.rendezvous, job.slots.open
        columns.append("jobs", made)
        self._ports(job, ports, np.asarray(ranks["port0"], np.int64))

    def _devices(self, info: JobInfo) -> I32 | int:
        """The memory device of each rank, with a row of the columns."""
        if info.devices is None:
            return s.NONE
        devices = info.devices[info.endpoints]
        more = int(info.devices.max(initial=s.NONE)) + 1 - self.columns.used("free_at")
        self.columns.extend("free_at", max(more, 0))
        return devices

    def seat(self, job: int) -> None:
        """Have a job's ranks go where their endpoints are now: for what they send, and for memory."""
        info = self.jobs[job].info
        first = self.rank0[job]
        self.columns.arrays["ranks"]["device"][first : first + len(info.endpoints)] = self._devices(info)
        self._move_messages(job)

    def _ports(self, job: ReadyJob, ports: Ports, port0: I64) -> None:
        """Say of each end of messages with whom it meets where, and what is sent from there."""
        info = job.info
        count = ports.count[info.workload.program_of]
        rank = np.repeat(np.arange(info.workload.world_size), count)
        if not len(rank):
            return
        within = np.arange(len(rank)) - np.repeat(np.cumsum(count) - count, count)
        port, of = (
            port0[rank] + within,
            (np.cumsum(ports.count) - ports.count)[info.workload.program_of][rank],
        )
        of += within
        peer = ports.peers(info.workload.mesh, info.workload.world_size, of, rank)
        rows = self.columns.arrays["ports"]
        rows["peer"][port] = peer
        known = peer >= 0
        # Ends without a peer stay without a channel: a rank that reaches one is told so then, if it ever
        # does.
        port, of, rank, peer = (column[known] for column in (port, of, rank, peer))
        sends, tag = ports.sends[of], ports.tag[of]
        sender, receiver = np.where(sends, rank, peer), np.where(sends, peer, rank)
        rows["channel"][port] = self._channels(job, sender, receiver, tag)
        size, channel = ports.size_bytes[of], ports.channel[of]
        if not info.workload.rendezvous:
            port, rank, peer, size, channel = (c[sends] for c in (port, rank, peer, size, channel))
        else:
            size, channel = np.where(sends, size, REQUEST_BYTES), np.where(sends, channel, 0)
        src, dst = (np.asarray(info.endpoints[one], np.int32) for one in (rank, peer))
        rows["binding"][port] = self._bindings(job.number, src, dst, size, channel.astype(np.int32))

    def _channels(self, job: ReadyJob, sender: I64, receiver: I64, tag: I64) -> I64:
        """Where the messages of each (sender, receiver, tag) meet."""
        world = job.info.workload.world_size
        tags, of = np.unique(tag, return_inverse=True)
        unique, number = np.unique((sender * world + receiver) * len(tags) + of, return_inverse=True)
        first, rows = self.columns.extend("channels", len(unique))
        rows["head"] = rows["tail"] = s.NONE
        pair = unique // len(tags)
        self.messages.channels.append(
            (first, job.number, pair // world, pair % world, tags[unique % len(tags)])
        )
        return np.asarray(first + number, np.int64)

    def _bindings(self, job: int, src: I32, dst: I32, size: I64, channel: I32) -> I64:
        """The flows of messages: alike ones once."""
        one, number = unique_rows(src, dst, size, channel)
        src, dst, size, channel = src[one], dst[one], size[one], channel[one]
        made = np.zeros(len(one), s.BINDING)
        made["flows"], made["blocks"], made["table"] = 1, 1, s.NONE
        made["block"] = self._flow_log.blocks(_ONE_MESSAGE)
        made["info"] = self._flow_log.bind_rows(src, dst, size) + np.arange(len(one))
        first = self.columns.append("bindings", made)
        self.messages.bindings.append((first, job, src, dst, size, channel))
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
            rows = self.columns.arrays["bindings"][first : first + len(src)]
            rows["info"] = self._flow_log.bind_rows(src, dst, size) + np.arange(len(src))
        self._seats[job] = now


@dataclass(frozen=True, eq=False, slots=True)
class MessageTable:
    """What channels and bindings of messages stand for, job by job: those from a first number on."""

    channels: list[tuple[int, int, I64, I64, I64]] = field(default_factory=list)
    """First, job, senders, receivers, tags."""
    bindings: list[tuple[int, int, I32, I32, I64, I32]] = field(default_factory=list)
    """First, job, sources, destinations, bytes, channels."""

    def of(self, job: int) -> list[int]:
        """Which entries of ``bindings`` are a job's."""
        return [number for number, one in enumerate(self.bindings) if one[1] == job]


_ONE_MESSAGE = flat_table([0], [1], [0])
