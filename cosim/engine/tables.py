"""Programs and ranks as columns: written once, before a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cosim.engine import state as s
from cosim.engine.columns import Columns
from cosim.engine.flow_log import FlowLog
from cosim.engine.messages import REQUEST_BYTES
from cosim.engine.programs import Naming, ReadyJob, ReadyProgram
from cosim.network.calendar import Records
from cosim.network.flows import I32, I64, flat_table
from cosim.workload.program import DeviceMesh, Operation, OpKind

What = tuple[str, int, int]
"""A collective's kind, size and root."""
_KINDS = {
    OpKind.COMPUTE: s.COMPUTE,
    OpKind.MEMORY: s.COMPUTE,
    OpKind.COLLECTIVE: s.COLLECTIVE,
    OpKind.SEND: s.SEND,
    OpKind.RECV: s.RECV,
}


@dataclass(frozen=True, eq=False, slots=True)
class ProgramTable:
    """A program's place in the columns. ``groups``: what its collectives name, with the form that all members
    share; ``ports``: a SEND or RECV for each of its ends of messages.
    """

    number: int
    program: ReadyProgram
    groups: tuple[tuple[Operation, Naming], ...]
    ports: tuple[Operation, ...]
    lanes: int


class Tables:
    """All programs and ranks of a run; ``rank0[job]`` is a job's first rank."""

    def __init__(self, columns: Columns, flow_log: FlowLog, jobs: Sequence[ReadyJob]) -> None:
        self.columns = columns
        self._flow_log = flow_log
        self.jobs = jobs
        self.whats: dict[What, int] = {}
        self.messages = MessageTable()
        self.programs: list[ProgramTable] = []
        self.program_of: dict[tuple[int, int], ProgramTable] = {}
        self.rank0: list[int] = []
        for job in jobs:
            for number, program in enumerate(job.programs):
                table = self._program(program)
                self.programs.append(table)
                self.program_of[job.number, number] = table
            self._ranks(job)
        num_ranks = columns.used("ranks")
        columns.reserve("touched", num_ranks)
        columns.reserve("begins", num_ranks)

    def program(self, job: int, rank: int) -> ProgramTable:
        """The program that a rank of a job runs."""
        return self.program_of[job, int(self.jobs[job].info.workload.program_of[rank])]

    # -- programs ------------------------------------------------------------------------------------

    def _program(self, program: ReadyProgram) -> ProgramTable:
        columns, count = self.columns, len(program.operations)
        lanes = len(program.streams) + 1
        lane = np.array(program.stream, np.int64)
        lane[lane < 0] = lanes - 1
        base = np.concatenate([[0], np.cumsum(np.bincount(lane, minlength=lanes))[:-1]])
        ptr = np.concatenate([[0], np.cumsum([len(one) for one in program.successors], dtype=np.int64)])
        successors = [k for one in program.successors for k in one]
        first = columns.append("successors", np.array(successors, np.int32))
        ops = np.zeros(count, s.OP)
        ops["kind"] = [_KINDS[one.kind] for one in program.operations]
        ops["duration"] = [one.duration_ps for one in program.operations]
        ops["size"] = [one.size_bytes for one in program.operations]
        ops["lane"], ops["waits"], ops["occurrence"] = lane, program.waits, program.occurrence
        ops["first"], ops["last"] = first + ptr[:-1], first + ptr[1:]
        groups, ports = self._ends(program, ops)
        columns.append("ops", ops)
        made = np.zeros(1, s.PROGRAM)
        made["op0"], made["ops"] = columns.used("ops") - count, count
        made["lanes"], made["lane0"] = lanes, columns.append("lane_base", base.astype(np.int32))
        made["roots"], made["root0"] = (
            len(program.roots),
            columns.append("roots", np.array(program.roots, np.int32)),
        )
        return ProgramTable(columns.append("programs", made), program, groups, ports, lanes)

    def _ends(
        self, program: ReadyProgram, ops: Records
    ) -> tuple[tuple[tuple[Operation, Naming], ...], tuple[Operation, ...]]:
        """What the program's collectives name, and its ends of messages; ``ops`` are told their numbers."""
        groups: dict[object, int] = {}
        ports: dict[object, int] = {}
        named: list[tuple[Operation, Naming]] = []
        ended: list[Operation] = []
        for at, one in enumerate(program.operations):
            if one.kind is OpKind.COLLECTIVE:
                what = one.collective, one.size_bytes, one.root
                ops[at]["what"] = self.whats.setdefault(what, len(self.whats))
                ops[at]["ref"] = groups.setdefault((one.axes, one.ranks), len(groups))
                if len(groups) > len(named):
                    named.append((one, program.naming[at]))
            elif one.kind in (OpKind.SEND, OpKind.RECV):
                key = one.kind, one.peer, one.tag, one.size_bytes, one.channel
                ops[at]["ref"] = ports.setdefault(key, len(ports))
                if len(ports) > len(ended):
                    ended.append(one)
        return tuple(named), tuple(ended)

    # -- ranks ---------------------------------------------------------------------------------------

    def _ranks(self, job: ReadyJob) -> None:
        columns, info = self.columns, job.info
        mine = [self.program_of[job.number, number] for number in range(len(job.programs))]
        of, world = info.workload.program_of, info.workload.world_size
        ranks = np.zeros(world, s.RANK)
        lengths = {
            "cell0": ("cells", [len(one.program.operations) for one in mine]),
            "lane0": ("lanes", [one.lanes for one in mine]),
            "ref0": ("members", [len(one.groups) for one in mine]),
            "port0": ("ports", [len(one.ports) for one in mine]),
        }
        for name, (column, length) in lengths.items():
            count = np.array(length, np.int64)[of]
            first, rows = columns.extend(column, int(count.sum()))
            ranks[name] = first + np.cumsum(count) - count
            if column == "cells":
                rows["started"] = s.NONE
            elif column == "lanes":
                rows["busy"] = s.NONE
            else:
                for name_of in rows.dtype.names or ():
                    rows[name_of] = s.NONE
        ranks["pace0"] = s.NONE
        if info.pace is not None:
            columns.extend("pace", columns.used("cells"))
            ranks["pace0"] = ranks["cell0"]
        ranks["program"] = np.array([one.number for one in mine], np.int32)[of]
        ranks["job"], ranks["number"] = job.number, np.arange(world)
        ranks["iteration"] = ranks["finish"] = s.NONE
        self.rank0.append(columns.append("ranks", ranks))
        ends, _ = columns.extend("iteration_ends", world * info.iterations)
        trait0, traits = columns.extend("traits", info.iterations)
        traits[:] = s.NONE
        made = np.zeros(1, s.JOB)
        made["rank0"], made["end0"], made["trait0"] = self.rank0[-1], ends, trait0
        made["ranks"], made["iterations"] = world, info.iterations
        made["rendezvous"] = info.workload.rendezvous
        columns.append("jobs", made)
        self._ports(job, mine)

    def _ports(self, job: ReadyJob, programs: Sequence[ProgramTable]) -> None:
        """Say of each end of messages with whom it meets where, and what is sent from there."""
        columns, info = self.columns, job.info
        first = self.rank0[-1]
        port0 = columns.arrays["ranks"]["port0"][first : first + info.workload.world_size]
        parts = []
        for number, one in enumerate(programs):
            members = np.flatnonzero(info.workload.program_of == number)
            if not one.ports or not len(members):
                continue
            peer = peers(info.workload.mesh, info.workload.world_size, one.ports, members)
            shape = peer.shape
            parts.append(
                np.stack(
                    [
                        (port0[members].astype(np.int64)[:, None] + np.arange(shape[1])).ravel(),
                        np.repeat(members, shape[1]),
                        peer.ravel(),
                        *(
                            np.tile(np.array(values, np.int64), shape[0])
                            for values in (
                                [port.kind is OpKind.SEND for port in one.ports],
                                [port.tag for port in one.ports],
                                [port.size_bytes for port in one.ports],
                                [port.channel for port in one.ports],
                            )
                        ),
                    ]
                )
            )
        if not parts:
            return
        port, rank, peer, sends, tag, size, channel = np.concatenate(parts, axis=1)
        ports = columns.arrays["ports"]
        ports["peer"][port] = peer
        known = peer >= 0
        port, rank, peer, sends, tag, size, channel = (
            column[known] for column in (port, rank, peer, sends, tag, size, channel)
        )
        sender, receiver = np.where(sends, rank, peer), np.where(sends, peer, rank)
        ports["channel"][port] = self._channels(job, sender, receiver, tag)
        if not info.workload.rendezvous:
            chosen = sends.astype(bool)
            port, rank, peer, size, channel = (c[chosen] for c in (port, rank, peer, size, channel))
        else:
            size, channel = np.where(sends, size, REQUEST_BYTES), np.where(sends, channel, 0)
        src, dst = (np.asarray(info.endpoints[one], np.int32) for one in (rank, peer))
        ports["binding"][port] = self._bindings(job.number, src, dst, size, channel.astype(np.int32))

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
        rows = np.stack([src, dst, size, channel], axis=1)
        unique, number = np.unique(rows, axis=0, return_inverse=True)
        src, dst, channel = (np.ascontiguousarray(unique[:, k], np.int32) for k in (0, 1, 3))
        made = np.zeros(len(unique), s.BINDING)
        made["flows"], made["blocks"], made["table"] = 1, 1, s.NONE
        made["block"] = self._flow_log.blocks(_ONE_MESSAGE)
        made["info"] = self._flow_log.bind_rows(src, dst, unique[:, 2]) + np.arange(len(unique))
        first = self.columns.append("bindings", made)
        self.messages.bindings.append((first, job, src, dst, unique[:, 2], channel))
        return np.asarray(first + number.reshape(-1), np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class MessageTable:
    """What channels and bindings of messages stand for, job by job: those from a first number on."""

    channels: list[tuple[int, int, I64, I64, I64]] = field(default_factory=list)
    """First, job, senders, receivers, tags."""
    bindings: list[tuple[int, int, I32, I32, I64, I32]] = field(default_factory=list)
    """First, job, sources, destinations, bytes, channels."""


_ONE_MESSAGE = flat_table([0], [1], [0])


def peers(mesh: DeviceMesh, world: int, ports: Sequence[Operation], members: I64) -> I64:
    """int64[members, ports]: the rank at the other end, NONE where there is none."""
    fixed, stride, size, offset = (np.full(len(ports), s.NONE, np.int64) for _ in range(4))
    names = list(mesh.axes)
    for k, port in enumerate(ports):
        peer = port.peer
        if peer is None:
            continue
        if peer.rank is not None:
            fixed[k] = peer.rank
        if peer.axis is not None and peer.axis in mesh.axes:
            after = names[names.index(peer.axis) + 1 :]
            stride[k] = int(np.prod([mesh.axes[name] for name in after], dtype=np.int64))
            size[k], offset[k] = mesh.axes[peer.axis], peer.offset
    moves = stride > 0
    rank = members[:, None]
    place = rank // np.maximum(stride, 1) % np.maximum(size, 1) + offset
    inside = moves & (place >= 0) & (place < size)
    found = np.where(inside, rank + offset * stride, fixed)
    return np.where((found >= 0) & (found < world) & (found != rank), found, s.NONE)
