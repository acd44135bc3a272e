"""What completions add up to: digest, completion times, traffic, every message if asked for."""

from __future__ import annotations

import numpy as np

from cosim.engine import counters
from cosim.engine.columns import Columns
from cosim.engine.counters import (
    FCT_BINS,
    FCT_CARRIES,
    FCT_CARRY,
    FCT_MAX,
    FCT_MIN,
    FCT_SUM,
    MESSAGES,
    SIZE_BITS,
    fct_edges,
)
from cosim.engine.records import FctHistogram, MessageRecords, TrafficRecord
from cosim.engine.state import ARRIVALS_N, BLOCK, NONE, REACTIONS_N
from cosim.engine.traffic import PairTraffic
from cosim.errors import NetworkError, WorkloadError
from cosim.network.flows import I32, I64, Completions, FlowTable
from cosim.network.held_signals import held_signals
from cosim.network.jit import compiled

_LONGEST = np.iinfo(np.int64).max
_DENSE_ENDPOINTS = 4096  # squared, times 4 bytes: 64 MB
_MOST_LISTED = 1 << 15  # arrivals, of 16 bytes: what is in them is in a cache when it is put into bins


@compiled
def _number_pairs(
    src: I32, dst: I32, num_endpoints: int, numbers: I32, codes: I64, count: int, out: I64
) -> int:
    """Give each row its pair's number, new pairs the next ones, -1 to itself; how many pairs there are."""
    for k in range(len(src)):
        if src[k] == dst[k]:
            out[k] = -1
            continue
        code = src[k] * num_endpoints + dst[k]
        number = numbers[code]
        if number < 0:
            number = count
            numbers[code] = count
            codes[count] = code
            count += 1
        out[k] = number
    return count


def no_counts() -> I64:
    """The scalars of no completion yet."""
    counts = np.zeros(8, np.int64)
    counts[FCT_MIN] = _LONGEST
    return counts


def histogram(counts: I64, fct: I64) -> FctHistogram:
    """Flow completion times of these scalars and bins."""
    return FctHistogram(
        fct_edges(),
        fct,
        0 if counts[MESSAGES] == 0 else int(counts[FCT_MIN]),
        int(counts[FCT_MAX]),
        int(counts[FCT_SUM]) + int(counts[FCT_CARRIES]) * FCT_CARRY,
    )


class Pairs:
    """Numbers for (source, destination) endpoint pairs, in order of first use."""

    def __init__(self, num_endpoints: int) -> None:
        self._endpoints = num_endpoints
        # A table of all pairs while it takes 64 MB at most: to look one up is one access, in compiled code.
        dense = num_endpoints <= _DENSE_ENDPOINTS
        self._dense = np.full(num_endpoints**2, -1, np.int32) if dense else None
        self._sparse: dict[int, int] = {}
        self._codes = np.zeros(64, np.int64)
        self.count = 0

    def numbers(self, src: I32, dst: I32) -> I64:
        """The pair's number for each row; new pairs get the next ones, an endpoint to itself -1."""
        if self._dense is None:
            codes = np.where(src == dst, -1, src.astype(np.int64) * self._endpoints + dst)
            unique, inverse = np.unique(codes, return_inverse=True)
            known = [self._sparse.setdefault(c, len(self._sparse)) if c >= 0 else -1 for c in unique.tolist()]
            self.count = len(self._sparse)
            return np.array(known, np.int64)[inverse]
        most = min(self.count + len(src), self._endpoints**2)
        if most > len(self._codes):
            # As long as if all of them were new: compiled code can't grow it.
            self._codes = np.concatenate([self._codes, np.zeros(most, np.int64)])
        out = np.empty(len(src), np.int64)
        self.count = int(_number_pairs(src, dst, self._endpoints, self._dense, self._codes, self.count, out))
        return out

    def endpoints(self) -> tuple[I32, I32]:
        """(Sources, destinations) by number."""
        codes = np.array(list(self._sparse), np.int64) if self._dense is None else self._codes[: self.count]
        return (codes // self._endpoints).astype(np.int32), (codes % self._endpoints).astype(np.int32)


class FlowLog:
    """Counts what completes, in arrays of ``columns`` that :func:`~cosim.engine.counters.count` fills."""

    def __init__(self, columns: Columns, num_endpoints: int, *, record_messages: bool = False) -> None:
        self._columns = columns
        self._counts, self._fct = no_counts(), np.zeros(FCT_BINS, np.int64)
        columns.replace("counts", self._counts)
        columns.replace("fct", self._fct)
        self._pairs = Pairs(num_endpoints)
        self._traffic = PairTraffic()
        self._tables: dict[int, tuple[FlowTable, int]] = {}
        self._bindings: dict[tuple[int, bytes], int] = {}
        self._messages: list[tuple[I64, ...]] | None = [] if record_messages else None

    @property
    def num_messages(self) -> int:
        """Messages completed so far; marks are none."""
        return int(self._counts[MESSAGES])

    def blocks(self, table: FlowTable) -> int:
        """Where a table's blocks are; there once."""
        known = self._tables.get(id(table))
        if known is not None:
            return known[1]
        blocks = np.zeros(len(table.block_repeat), BLOCK)
        blocks["base"], blocks["row"] = table.block_base[:-1], table.block_row[:-1]
        blocks["rows"] = np.maximum(np.diff(table.block_row), 1)
        first = self._columns.append("blocks", blocks)
        self._tables[id(table)] = (table, first)
        return first

    def bind(self, table: FlowTable, endpoints: I32) -> int:
        """Where the rows of a table on endpoints are; there once.

        Raises
        ------
        WorkloadError
            A message larger than what is counted.
        """
        key = (id(table), endpoints.tobytes())
        known = self._bindings.get(key)
        if known is None:
            self.blocks(table)  # keeps the table, and so its id
            known = self.bind_rows(endpoints[table.src], endpoints[table.dst], table.size_bytes)
            self._bindings[key] = known
        return known

    def bind_rows(self, src: I32, dst: I32, size_bytes: I64) -> int:
        """Where rows between endpoints are.

        Raises
        ------
        WorkloadError
            A message larger than what is counted.
        """
        if len(size_bytes) and int(size_bytes.max()) >> SIZE_BITS:
            raise WorkloadError(f"a message of {int(size_bytes.max())} bytes; at most 64 GiB are counted")
        numbers = self._pairs.numbers(src, dst)
        self._traffic.expect_pairs(self._pairs.count)
        return self._columns.append("info", (numbers << SIZE_BITS) | size_bytes)

    def expect(self, count: int) -> None:
        """Have room for so many more completions."""
        columns = self._columns
        columns.reserve("reactions", int(columns.meta[REACTIONS_N]) + count)
        listed = int(columns.meta[ARRIVALS_N])
        if listed + count <= len(columns.arrays["arrivals"]):
            return
        if listed + count > _MOST_LISTED:
            with held_signals():
                self._put_into_bins()
            listed = 0
        columns.reserve("arrivals", listed + count)

    def _put_into_bins(self) -> None:
        """Put all arrivals that are listed into the bins of their pairs."""
        meta = self._columns.meta
        self._traffic.put(self._columns.arrays["arrivals"][: int(meta[ARRIVALS_N])])
        meta[ARRIVALS_N] = 0

    def count(self, done: Completions) -> None:
        """Count completions; those that the engine waits for become reactions.

        Raises
        ------
        NetworkError
            Something completed that is not in flight.
        """
        self.expect(len(done))
        if self._messages is None:
            self._count(done)
            return
        with held_signals():  # who is interrupted keeps the messages that were counted
            if self._are_known(done):
                self._keep(done)
            self._count(done)

    def _count(self, done: Completions) -> None:
        wrong = counters.count(
            self._columns.view(),
            np.ascontiguousarray(done.handle),
            np.ascontiguousarray(done.index),
            np.ascontiguousarray(done.start_ps),
            np.ascontiguousarray(done.time_ps),
            np.ascontiguousarray(done.since()),
            len(done),
        )
        if wrong == NONE:
            return
        handle, index = int(done.handle[wrong]), int(done.index[wrong])
        if not 0 <= handle < len(self._columns.arrays["handles"]):
            raise NetworkError("the network completed a flow of a group that it was never given")
        if index < 0:
            raise NetworkError("the network completed a flow of a negative number")
        start, end = int(done.start_ps[wrong]), int(done.time_ps[wrong])
        if not 0 <= start <= end:
            raise NetworkError(
                f"the network completed flow {index} of group {handle} at {end} ps; "
                f"it was to start at {start} ps"
            )
        raise NetworkError(
            f"the network completed flow {index} of group {handle}, none of whose flows is under way"
        )

    def _are_known(self, done: Completions) -> bool:
        handles = self._columns.arrays["handles"]
        if not len(done) or int(done.handle.min()) < 0 or int(done.handle.max()) >= len(handles):
            return False
        return bool((done.index >= 0).all() and (handles["left"][done.handle] > 0).all())

    def _keep(self, done: Completions) -> None:
        assert self._messages is not None
        one = self._columns.arrays["handles"][done.handle]
        blocks = self._columns.arrays["blocks"]
        last = (one["block"] + one["blocks"]).astype(np.int64)
        at = one["block"].astype(np.int64)
        # Tables have few blocks and there are many flows: all of them look at their next block at once.
        for _ in range(int(one["blocks"].max(initial=1)) - 1):
            step = (at + 1 < last) & (blocks["base"][np.minimum(at + 1, last - 1)] <= done.index)
            at += step
        block = blocks[at]
        row = block["row"] + (done.index - block["base"]) % block["rows"]
        info = self._columns.arrays["info"][one["info"] + row]
        kept = info >= 0
        self._messages.append(
            tuple(
                np.asarray(column[kept], np.int64)
                for column in (
                    one["key_high"],
                    one["key_low"] + done.index,
                    info >> SIZE_BITS,
                    info & ((1 << SIZE_BITS) - 1),
                    done.start_ps,
                    done.time_ps,
                )
            )
        )

    def fct(self) -> FctHistogram:
        """Flow completion times so far."""
        return histogram(self._counts, self._fct.copy())

    def traffic(self) -> TrafficRecord:
        """Bytes between endpoints over time so far."""
        self._put_into_bins()
        src, dst = self._pairs.endpoints()
        bin_ps, size_bytes = self._traffic.bins(self._pairs.count)
        return TrafficRecord(bin_ps, src, dst, size_bytes)

    def messages(self) -> MessageRecords | None:
        """Every message, sorted by (end, key), where they were to be recorded."""
        if self._messages is None:
            return None
        high, low, pair, size, start, end = (
            np.concatenate([np.empty(0, np.int64), *(chunk[c] for chunk in self._messages)]) for c in range(6)
        )
        # Networks report in no particular order; by key, what ends together is in the same order in every
        # run.
        order = np.lexsort((low, high, end))
        src, dst = self._pairs.endpoints()
        high, pair = high[order], pair[order]
        return MessageRecords(
            job=(high >> 51).astype(np.int32),
            iteration=((high >> 31) & ((1 << 20) - 1)).astype(np.int32),
            op=(high & ((1 << 31) - 1)).astype(np.int32),
            src=src[pair],
            dst=dst[pair],
            size_bytes=size[order],
            start_ps=start[order],
            end_ps=end[order],
        )
