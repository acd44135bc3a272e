"""What readers give: transfers between hosts, counters of ports, collectives and rings that ranks logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Transfers:
    """Bytes that went from host to host, a row for each transfer.

    A transfer is a message where the source tells messages apart, else a burst of one connection. Times are
    picoseconds since the first start of all, except in runs, which have their own zero.

    Attributes
    ----------
    hosts
        A name for each number in ``src`` and ``dst``.
    src, dst
        int32[transfers].
    size_bytes, start_ps, end_ps
        int64[transfers].
    part
        int32[transfers]: the number in ``parts`` that a transfer belongs to; -1: the source doesn't tell.
    parts
        Names: jobs of a run.
    step
        int64[transfers]: equal for transfers of one operation of a part; -1: the source doesn't tell.
    """

    hosts: Sequence[str]
    src: I32
    dst: I32
    size_bytes: I64
    start_ps: I64
    end_ps: I64
    part: I32
    parts: tuple[str, ...]
    step: I64

    def __len__(self) -> int:
        return len(self.src)

    def only(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Transfers:
        """Some of the transfers, of the same hosts."""
        return replace(
            self,
            src=self.src[chosen],
            dst=self.dst[chosen],
            size_bytes=self.size_bytes[chosen],
            start_ps=self.start_ps[chosen],
            end_ps=self.end_ps[chosen],
            part=self.part[chosen],
            step=self.step[chosen],
        )


@dataclass(frozen=True, eq=False)
class PortCounters:
    """Samples of one port: ``in_bytes[i]`` and ``out_bytes[i]`` passed between sample i - 1 and sample i.

    ``at_ps`` rises strictly. The first sample's bytes lie before the record's begin; rates leave them out.
    """

    name: str
    at_ps: I64
    in_bytes: I64
    out_bytes: I64


@dataclass(frozen=True, eq=False)
class LoggedCollectives:
    """Collectives and sends that ranks logged, a row for each rank's part of one.

    Attributes
    ----------
    groups
        A name for each number in ``group``: communicators.
    group, rank, num_ranks
        int32[rows]: the communicator, the rank in it, its size.
    kinds
        A name for each number in ``kind``: ``AllReduce``, ``Send``.
    kind
        int32[rows].
    number
        int64[rows]: the sequence number in the communicator.
    size_bytes
        int64[rows], as NCCL counts them.
    duration_ps
        int64[rows].
    start_ps
        int64[rows]: -1 where the log has no event times.
    peer
        int32[rows]: of a send or receive, the other rank; else -1.
    processes, process
        A name for each number in ``process``, int32[rows]: ``host:pid``.
    """

    groups: tuple[str, ...]
    kinds: tuple[str, ...]
    group: I32
    rank: I32
    num_ranks: I32
    kind: I32
    number: I64
    size_bytes: I64
    duration_ps: I64
    start_ps: I64
    peer: I32
    processes: tuple[str, ...]
    process: I32

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, eq=False)
class LoggedCommunicator:
    """A communicator of NCCL's, as ranks logged it, or as a model says it.

    Attributes
    ----------
    name
        Its ``commId``, or its number of ranks.
    num_ranks, num_hosts
        0 hosts: nobody said it.
    version
        Of NCCL; empty: unknown.
    hosts
        The host of each rank that logged.
    num_channels
        0: it isn't told.
    nexts
        By channel and rank: the next rank on the channel's ring.
    parents
        By channel and rank: who is above in the channel's tree; -1: it is the root.
    ways, received
        By channel, source and destination: how a connection goes, as its sender and its receiver say.
    contradictions
        What lines say that can't all be.
    """

    name: str
    num_ranks: int
    num_hosts: int
    version: str
    hosts: Mapping[int, str]
    num_channels: int
    nexts: Mapping[int, Mapping[int, int]]
    parents: Mapping[int, Mapping[int, int]]
    ways: dict[tuple[int, int, int], str]
    received: dict[tuple[int, int, int], str]
    contradictions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TrafficCapture:
    """One file or folder, read: what was in it, and lines that say what was read, ignored and missing."""

    name: str
    kind: str
    transfers: Transfers | None = None
    ports: tuple[PortCounters, ...] = ()
    collectives: LoggedCollectives | None = None
    communicators: tuple[LoggedCommunicator, ...] = ()
    notes: tuple[str, ...] = ()


def plain_transfers(
    hosts: Sequence[str], src: I32, dst: I32, size_bytes: I64, start_ps: I64, end_ps: I64
) -> Transfers:
    """Transfers of a source that tells neither jobs nor operations, times from the first start on."""
    zero = int(start_ps.min()) if len(start_ps) else 0
    part, step = np.full(len(src), -1, np.int32), np.full(len(src), -1, np.int64)
    return Transfers(hosts, src, dst, size_bytes, start_ps - zero, end_ps - zero, part, (), step)
