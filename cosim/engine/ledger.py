"""The ledger: flow groups in flight, as the engine sees them, and what their completions add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import FctHistogram, MessageRecords, TrafficRecord
from cosim.engine.tally import (
    BLOCK,
    FCT_BINS,
    FCT_MAX,
    FCT_MIN,
    FCT_SUM,
    HANDLE,
    MESSAGES,
    SIZE_BITS,
    TRAFFIC_BIN,
    fct_edges,
    fold,
)
from cosim.errors import NetworkError, WorkloadError
from cosim.network.flows import I32, I64, Completions, FlowGroup, FlowTable
from cosim.network.jit import compiled

_TRAFFIC_CELLS = 1 << 22
_DENSE_ENDPOINTS = 4096


@dataclass(frozen=True, slots=True)
class Reaction:
    """Completions that the engine waits for, as columns: when it reacts, and since when that is certain."""

    handle: I32
    index: I64
    time_ps: I64
    cause_ps: I64


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


class Pairs:
    """Numbers for (source, destination) endpoint pairs, in order of first use."""

    def __init__(self, num_endpoints: int) -> None:
        self._endpoints = num_endpoints
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
            self._codes = np.concatenate([self._codes, np.zeros(most, np.int64)])
        out = np.empty(len(src), np.int64)
        self.count = int(_number_pairs(src, dst, self._endpoints, self._dense, self._codes, self.count, out))
        return out

    def endpoints(self) -> tuple[I32, I32]:
        """(Sources, destinations) by number."""
        codes = np.array(list(self._sparse), np.int64) if self._dense is None else self._codes[: self.count]
        return (codes // self._endpoints).astype(np.int32), (codes % self._endpoints).astype(np.int32)


class Ledger:
    """Counts what completes. Arrays grow here, in Python; :func:`~cosim.engine.tally.fold` fills them."""

    def __init__(self, num_endpoints: int, *, record_messages: bool = False) -> None:
        self.digest = np.zeros(2, np.uint64)
        self._counts = np.zeros(8, np.int64)
        self._counts[FCT_MIN] = np.iinfo(np.int64).max
        self._counts[TRAFFIC_BIN] = 1 << 16
        self._handles = np.zeros(64, HANDLE)
        self._blocks: NDArray[Any] = np.zeros(64, BLOCK)
        self._blocks_used = 0
        self._info: I64 = np.zeros(64, np.int64)
        self._info_used = 0
        self._fct = np.zeros(FCT_BINS, np.int64)
        self._pairs = Pairs(num_endpoints)
        self._traffic = np.zeros((64, 64), np.int64)
        self._tables: dict[int, tuple[FlowTable, int]] = {}
        self._bindings: dict[tuple[int, bytes], int] = {}
        self._messages: list[tuple[I64, ...]] | None = [] if record_messages else None

    @property
    def num_messages(self) -> int:
        """Messages completed so far; marks are none."""
        return int(self._counts[MESSAGES])

    def _append(self, name: str, used: str, rows: NDArray[Any]) -> int:
        array, first = getattr(self, name), getattr(self, used)
        if first + len(rows) > len(array):
            larger = np.zeros(max(first + len(rows), 2 * len(array)), array.dtype)
            larger[:first] = array[:first]
            array = larger
            setattr(self, name, larger)
        array[first : first + len(rows)] = rows
        setattr(self, used, first + len(rows))
        return int(first)

    def _table(self, table: FlowTable) -> int:
        known = self._tables.get(id(table))
        if known is not None:
            return known[1]
        blocks = np.zeros(len(table.block_repeat), BLOCK)
        blocks["base"], blocks["row"] = table.block_base[:-1], table.block_row[:-1]
        blocks["rows"] = np.maximum(np.diff(table.block_row), 1)
        first = self._append("_blocks", "_blocks_used", blocks)
        self._tables[id(table)] = (table, first)
        return first

    def _bind(self, table: FlowTable, endpoints: I32) -> int:
        key = (id(table), endpoints.tobytes())
        known = self._bindings.get(key)
        if known is not None:
            return known
        if len(table.size_bytes) and int(table.size_bytes.max()) >> SIZE_BITS:
            raise WorkloadError(
                f"a message of {int(table.size_bytes.max())} bytes; at most 64 GiB are counted"
            )
        numbers = self._pairs.numbers(endpoints[table.src], endpoints[table.dst])
        info = (numbers << SIZE_BITS) | table.size_bytes
        while self._pairs.count > self._traffic.shape[1]:
            self._widen_traffic()
        first = self._append("_info", "_info_used", info)
        self._bindings[key] = first
        return first

    def _widen_traffic(self) -> None:
        old = self._traffic
        pairs = max(2 * old.shape[1], self._pairs.count)
        while len(old) > 8 and len(old) * pairs > _TRAFFIC_CELLS:
            old = old.reshape(len(old) // 2, 2, -1).sum(axis=1)
            self._counts[TRAFFIC_BIN] *= 2
        self._traffic = np.zeros((len(old), pairs), np.int64)
        if self._counts[MESSAGES]:
            self._traffic[:, : old.shape[1]] = old

    def open(self, group: FlowGroup, react_from: int) -> None:
        """Expect a group's completions; those from flow ``react_from`` on are reported back."""
        while group.handle >= len(self._handles):
            self._handles = np.concatenate([self._handles, np.zeros_like(self._handles)])
        table = group.table
        self._handles[group.handle] = (
            *group.key,
            table.num_flows,
            react_from,
            self._bind(table, group.endpoints),
            self._table(table),
            len(table.block_repeat),
        )

    def react_from(self, handle: int) -> int:
        """The first flow of a group that the engine waits for; 0 for a single message."""
        return int(self._handles["react_from"][handle])

    def react_from_of(self, handle: I32) -> I64:
        """The same, for many."""
        return np.asarray(self._handles["react_from"][handle], np.int64)

    def by_key(self, handle: I32, index: I64) -> I64:
        """The order of flows by key."""
        one = self._handles[handle]
        return np.lexsort((one["key_low"] + index, one["key_high"]))

    def fold(self, completions: Completions) -> tuple[Reaction, list[int]]:
        """Count completions; (those that the engine waits for, handles of groups that ended).

        Raises
        ------
        NetworkError
            Something completed that is not in flight.
        """
        count = len(completions)
        react, since = np.empty(count, np.int64), np.empty(count, np.int64)
        closed = np.empty(count, np.int32)
        num_react, num_closed = fold(
            completions.handle,
            completions.index,
            completions.start_ps,
            completions.time_ps,
            self.digest,
            self._counts,
            self._handles,
            self._blocks,
            self._info,
            self._fct,
            self._traffic,
            completions.since(),
            react,
            since,
            closed,
        )
        if num_closed < 0:
            handle, index = int(completions.handle[num_react]), int(completions.index[num_react])
            if not 0 <= handle < len(self._handles):
                raise NetworkError("the network completed a flow of a group that it was never given")
            if index < 0:
                raise NetworkError("the network completed a flow of a negative number")
            raise NetworkError(
                f"the network completed flow {index} of group {handle}, none of whose flows is under way"
            )
        if self._messages is not None:
            self._keep(completions)
        chosen = react[:num_react]
        reaction = Reaction(
            completions.handle[chosen],
            completions.index[chosen],
            completions.time_ps[chosen],
            since[:num_react],
        )
        return reaction, closed[:num_closed].tolist()

    def _keep(self, done: Completions) -> None:
        assert self._messages is not None
        one = self._handles[done.handle]
        last = (one["block"] + one["num_blocks"]).astype(np.int64)
        at = one["block"].astype(np.int64)
        for _ in range(int(one["num_blocks"].max(initial=1)) - 1):
            step = (at + 1 < last) & (self._blocks["base"][np.minimum(at + 1, last - 1)] <= done.index)
            at += step
        block = self._blocks[at]
        row = block["row"] + (done.index - block["base"]) % block["rows"]
        info = self._info[one["info"] + row]
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
        none = self._counts[MESSAGES] == 0
        return FctHistogram(
            fct_edges(),
            self._fct.copy(),
            0 if none else int(self._counts[FCT_MIN]),
            int(self._counts[FCT_MAX]),
            int(self._counts[FCT_SUM]),
        )

    def traffic(self) -> TrafficRecord:
        """Bytes between endpoints over time so far."""
        src, dst = self._pairs.endpoints()
        return TrafficRecord(int(self._counts[TRAFFIC_BIN]), src, dst, self._traffic[:, : self._pairs.count])

    def messages(self) -> MessageRecords | None:
        """Every message, sorted by (end, key), where they were to be recorded."""
        if self._messages is None:
            return None
        high, low, pair, size, start, end = (
            np.concatenate([np.empty(0, np.int64), *(chunk[c] for chunk in self._messages)]) for c in range(6)
        )
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
