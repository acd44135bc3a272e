"""Transfers out of packets: messages of RoCEv2, bursts of TCP and UDP.

RoCEv2 says where a message begins; it ends with the acknowledgement of its last packet, if that was captured,
else with the last packet. Of TCP and UDP a transfer is a run of packets of one connection without a pause of
a millisecond. What was sent again counts once: TCP by sequence numbers, RoCEv2 by packet numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosim.captures.packets import ROCE, TCP, UDP, Packets
from cosim.captures.traffic import Transfers, plain_transfers
from cosim.errors import InputError, Location

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]

_PAUSE_NS = 1_000_000
_MOST_SPAN_NS = 4 * 10**15
_FAR = 1 << 40


@dataclass(slots=True)
class _Sending:
    """What is known of a connection at the end of a block: its open transfer, its last packet's time, its
    last sequence number, and this and the furthest one reached counted from the first.
    """

    row: int
    time_ns: int
    sequence: int
    here: int
    furthest: int


class Connections:
    """Collects packets, block by block."""

    def __init__(self) -> None:
        self._hosts: dict[bytes, int] = {}
        self._open: dict[int, _Sending] = {}
        self._columns = np.zeros((5, 1024), np.int64)  # source, target, bytes, start, end
        self._used = 0
        self._unacknowledged: dict[tuple[int, int, int], int] = {}
        self._last_ns = -1
        self.ignored = self.resent = self.missing = self.back = 0

    def add(self, packets: Packets, time_ns: I64) -> None:
        """Add the packets of a block, in the order of the file."""
        self.ignored += int((~packets.known).sum())
        self.back += int((np.diff(time_ns, prepend=self._last_ns) < 0).sum())
        self._last_ns = int(time_ns[-1])
        known = np.flatnonzero(packets.known)
        source, target = self._numbers(packets.source[known]), self._numbers(packets.target[known])
        acknowledges = packets.acknowledges[known]
        data = ~acknowledges & ((packets.size_bytes[known] > 0) | packets.first[known])
        self._transfers(packets, known[data], source[data], target[data], time_ns)
        self._acknowledge(packets, known[acknowledges], source[acknowledges], target[acknowledges], time_ns)

    def _numbers(self, address: NDArray[np.uint8]) -> I64:
        whole = np.ascontiguousarray(address).view(np.dtype((np.void, 17))).ravel()
        if len(whole) and (address[:, 0] == 4).all():
            values = address[:, 1:5].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
            _, first, place = np.unique(values, return_index=True, return_inverse=True)
        else:
            _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        numbers = [self._hosts.setdefault(whole[at].tobytes(), len(self._hosts)) for at in first.tolist()]
        return np.array(numbers, np.int64)[place] if numbers else np.zeros(0, np.int64)

    def _transfers(
        self, packets: Packets, chosen: NDArray[np.intp], source: I64, target: I64, time_ns: I64
    ) -> None:
        if not len(chosen):
            return
        kind = packets.kind[chosen]
        pair = source << 20 | target  # under a million hosts
        key = np.stack([pair, kind << 32 | packets.connection[chosen]])
        order = np.lexsort((key[0], key[1]))
        begins = np.append(True, (np.diff(key[:, order]) != 0).any(axis=0))
        first = np.flatnonzero(begins)
        known = [self._open.get(self._key(key, order[at])) for at in first.tolist()]
        chosen, kind, time = chosen[order], kind[order], time_ns[chosen][order]
        new = np.array([one is None for one in known])
        before = np.append(0, time[:-1])
        before[first] = [0 if one is None else one.time_ns for one in known]
        size = self._new_bytes(packets, chosen, kind, begins, known)
        roce = kind == ROCE
        fresh = np.where(roce, packets.first[chosen], time - before > _PAUSE_NS)
        fresh &= (size > 0) | (packets.size_bytes[chosen] == 0)  # what is sent again begins nothing
        fresh[first] |= new
        self._write(chosen, packets, order, fresh, first, known, source, target, size, time, key)

    @staticmethod
    def _key(key: I64, at: int) -> int:
        return int(key[0, at]) << 40 | int(key[1, at])

    def _new_bytes(
        self,
        packets: Packets,
        chosen: NDArray[np.intp],
        kind: I64,
        begins: Bools,
        known: list[_Sending | None],
    ) -> I64:
        """Payload that its connection did not have before; says what is known of each connection after."""
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(chosen)) - 1
        sequence, advance = packets.sequence[chosen], packets.advance[chosen]
        size = packets.size_bytes[chosen]
        bits = np.where(kind == TCP, 32, 24)
        step = np.diff(sequence, prepend=0)
        step[first] = [
            0 if one is None else int(sequence[at]) - one.sequence
            for at, one in zip(first, known, strict=True)
        ]
        half = 1 << (bits - 1)
        step = (step + half) % (1 << bits) - half
        step[first] += [0 if one is None else one.here for one in known]
        number = np.cumsum(begins) - 1
        course = np.cumsum(step)
        here = course - (course[first] - step[first])[number]
        reached = np.array([-_FAR // 2 if one is None else one.furthest for one in known], np.int64)
        after = here + advance
        # One running maximum for all connections: each begins far above the one before.
        shifted = np.maximum.accumulate(np.maximum(after, reached[number]) + number * _FAR) - number * _FAR
        before = np.append(0, shifted[:-1])
        before[first] = reached
        again = np.clip(before - here, 0, None)
        fresh = np.where(
            kind == UDP,
            size,
            np.where(kind == ROCE, np.where(again > 0, 0, size), np.clip(size - again, 0, None)),
        )
        fresh = np.where(np.isin(kind, (TCP, UDP, ROCE)), fresh, size)
        self.resent += int((size - fresh).sum())
        gap = np.clip(here - before, 0, None)
        gap[first[reached == -_FAR // 2]] = 0
        self.missing += int(gap[kind == TCP].sum())
        for at, one in enumerate(known):
            state = one if one is not None else _Sending(-1, 0, 0, 0, 0)
            end = int(last[at])
            state.sequence, state.here, state.furthest = int(sequence[end]), int(here[end]), int(shifted[end])
            known[at] = state
        return np.asarray(fresh, np.int64)

    def _write(
        self,
        chosen: NDArray[np.intp],
        packets: Packets,
        order: NDArray[np.intp],
        fresh: Bools,
        first: NDArray[np.intp],
        known: list[_Sending | None],
        source: I64,
        target: I64,
        size: I64,
        time: I64,
        key: I64,
    ) -> None:
        starts = np.flatnonzero(fresh | np.isin(np.arange(len(fresh)), first))
        number = np.searchsorted(first, starts, side="right") - 1
        goes_on = ~fresh[starts]
        count = int((~goes_on).sum())
        self._reserve(count)
        row = np.empty(len(starts), np.int64)
        row[~goes_on] = self._used + np.arange(count)
        row[goes_on] = [known[at].row for at in number[goes_on].tolist()]
        self._used += count
        new = row[~goes_on]
        where = order[starts[~goes_on]]
        columns = self._columns
        columns[0, new], columns[1, new] = source[where], target[where]
        columns[3, new] = columns[4, new] = time[starts[~goes_on]]
        np.add.at(columns[2], row, np.add.reduceat(size, starts))
        np.minimum.at(columns[3], row, np.minimum.reduceat(time, starts))
        np.maximum.at(columns[4], row, np.maximum.reduceat(time, starts))
        ends = np.append(first[1:], len(fresh)) - 1
        last_row = row[np.searchsorted(starts, ends, side="right") - 1]
        for at, one in enumerate(known):
            assert one is not None
            one.row, one.time_ns = int(last_row[at]), int(time[ends[at]])
            self._open[self._key(key, order[first[at]])] = one
        done = np.flatnonzero(packets.last[chosen])
        rows = row[np.searchsorted(starts, done, side="right") - 1]
        which = order[done]
        number_of = packets.sequence[chosen[done]]
        for src, dst, psn, one_row in zip(
            source[which].tolist(), target[which].tolist(), number_of.tolist(), rows.tolist(), strict=True
        ):
            self._unacknowledged[src, dst, psn] = one_row

    def _reserve(self, count: int) -> None:
        if self._used + count > self._columns.shape[1]:
            more = np.zeros((5, max(count, self._columns.shape[1])), np.int64)
            self._columns = np.concatenate([self._columns, more], axis=1)

    def _acknowledge(
        self, packets: Packets, chosen: NDArray[np.intp], source: I64, target: I64, time_ns: I64
    ) -> None:
        for src, dst, psn, time in zip(
            target.tolist(),
            source.tolist(),
            packets.sequence[chosen].tolist(),
            time_ns[chosen].tolist(),
            strict=True,
        ):
            row = self._unacknowledged.pop((src, dst, psn), None)
            if row is not None and time > self._columns[4, row]:
                self._columns[4, row] = time

    def transfers(self, path: Path) -> Transfers:
        """All transfers so far, in order of their starts.

        Raises
        ------
        InputError
            Times that no capture spans.
        """
        source, target, size, start, end = self._columns[:, : self._used]
        if len(start) and int(end.max()) - int(start.min()) > _MOST_SPAN_NS:
            raise InputError(
                "its times lie over 46 days apart",
                location=Location(str(path)),
                hint="a packet's time is damaged, or captures were joined: cut it with editcap -A and -B",
            )
        hosts = [str(ip_address(one[1:5] if one[0] == 4 else one[1:])) for one in self._hosts]
        zero = int(start.min(initial=1 << 62)) if len(start) else 0
        order = np.lexsort((end, start))
        columns = [column[order] for column in (size, (start - zero) * 1000, (end - zero) * 1000)]
        ends = source[order].astype(np.int32), target[order].astype(np.int32)
        return plain_transfers(hosts, *ends, *columns)

    def notes(self) -> list[str]:
        """What was ignored, sent again, missing."""
        said = []
        if self.ignored:
            said.append(f"{self.ignored:,} packets ignored: no IP, or too little of them was captured")
        if self.resent:
            said.append(f"{self.resent:,} bytes were sent again, and count once")
        if self.missing:
            said.append(f"{self.missing:,} bytes of TCP are missing: lost, or not captured")
        if self.back:
            said.append(f"the clock goes back {self.back:,} times")
        return said
