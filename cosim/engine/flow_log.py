"""What completions add up to: digest, completion times, traffic, every message if asked for.

They are counted in the kernel (``engine_counters.c``), in the columns that are bound here.
"""

from __future__ import annotations

from functools import cache
from typing import NoReturn

import numpy as np

from cosim.engine.columns import NONE, EngineColumns
from cosim.engine.records import FctHistogram, ListedBytes, MessageRecords, TrafficRecord
from cosim.errors import NetworkError
from cosim.kernel import kernel, record
from cosim.network.flows import I32, I64, Completions, FlowTable

_LONGEST = np.iinfo(np.int64).max
_FCT_CARRY = 1 << 62
_CELLS = 1 << 22  # of 8 bytes, all bins and pairs together
_MOST_BINS = 64
_FIRST_BIN_BITS = 16  # 65 ns; bins double as a run goes on
_FIRST_PAIRS = 64


@cache
def fct_edges() -> I64:
    """Edges of the flow completion time bins, ps: exact below 64, then 64 to each power of two."""
    fine = np.arange(64, dtype=np.int64)
    coarse = ((np.arange(64, dtype=np.int64) + 64)[None, :] << np.arange(56, dtype=np.int64)[:, None]).ravel()
    edges = np.append(np.concatenate([fine, coarse]), np.int64(2**62))
    edges.flags.writeable = False
    return edges


class FlowLog:
    """Binds tables to the pairs of endpoints that they are counted for, and says what was counted."""

    def __init__(self, columns: EngineColumns, *, record_messages: bool = False) -> None:
        self._columns = columns
        columns.scalars["fct_min"] = _LONGEST
        columns.scalars["keeps_messages"] = record_messages
        columns.traffic.state[0] = (0, _FIRST_PAIRS, _MOST_BINS, _CELLS, _FIRST_BIN_BITS, 0, 0)
        self._tables: dict[int, tuple[FlowTable, int]] = {}
        self._bindings: dict[tuple[int, bytes], int] = {}

    @property
    def num_messages(self) -> int:
        """Messages completed so far; marks are none."""
        return int(self._columns.scalars["messages"])

    def blocks(self, table: FlowTable) -> int:
        """Where a table's blocks are; there once."""
        known = self._tables.get(id(table))
        if known is not None:
            return known[1]
        blocks = np.zeros(len(table.block_repeat), record("flow_block"))
        blocks["base"], blocks["row"] = table.block_base[:-1], table.block_row[:-1]
        blocks["rows"] = np.maximum(np.diff(table.block_row), 1)
        first = self._columns.append("blocks", blocks)
        self._tables[id(table)] = (table, first)
        return first

    def bind(self, table: FlowTable, endpoints: I32) -> int:
        """Where the rows of a table on endpoints are; there once."""
        key = (id(table), endpoints.tobytes())
        known = self._bindings.get(key)
        if known is None:
            self.blocks(table)  # keeps the table, and so its id
            known = self.bind_rows(endpoints[table.src], endpoints[table.dst], table.size_bytes)
            self._bindings[key] = known
        return known

    def bind_rows(self, src: I32, dst: I32, size_bytes: I64) -> int:
        """Where rows between endpoints are."""
        first, rows = self._columns.extend("info", len(src))
        ends = np.ascontiguousarray(src, np.int32), np.ascontiguousarray(dst, np.int32)
        kernel.number_rows(self._columns.traffic, len(src), *ends, np.ascontiguousarray(size_bytes), rows)
        return first

    def count(self, done: Completions, before: int, granted: int) -> int:
        """Count completions of a network that isn't the kernel's, which went from ``before`` to ``granted``;
        those that the engine waits for become reactions. The number of one that can't be; NONE: none.
        """
        if not len(done):
            return NONE
        columns = done.handle, done.index, done.start_ps, done.time_ps, done.since()
        given = map(np.ascontiguousarray, columns)
        return int(kernel.count_completions(self._columns, before, granted, len(done), *given))

    def refuse(self, done: Completions, wrong: int) -> NoReturn:
        """Say why a completion can't be that came in time.

        Raises
        ------
        NetworkError
            Says what isn't in flight.
        """
        handle, index = int(done.handle[wrong]), int(done.index[wrong])
        if not 0 <= handle < int(self._columns.scalars["handles_used"]):
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

    def fct(self) -> FctHistogram:
        """Flow completion times so far."""
        counts = self._columns.scalars
        shortest = int(counts["fct_min"]) if counts["messages"] else 0
        total = int(counts["fct_sum"]) + int(counts["fct_carries"]) * _FCT_CARRY
        return FctHistogram(fct_edges(), self._columns.fct.copy(), shortest, int(counts["fct_max"]), total)

    def _pairs(self) -> tuple[I32, I32]:
        """(Sources, destinations) of pairs by number."""
        traffic = self._columns.traffic
        codes = traffic.codes[: int(traffic.state["num_pairs"][0])]
        return (codes >> 32).astype(np.int32), (codes & 0xFFFFFFFF).astype(np.int32)

    def traffic(self) -> TrafficRecord:
        """Bytes between endpoints over time so far."""
        traffic = self._columns.traffic
        state = traffic.state[0]
        src, dst = self._pairs()
        bins, pairs = int(state["bins"]), int(state["pairs"])
        found: I64 | ListedBytes
        if len(traffic.bytes):
            found = traffic.bytes[: bins * pairs].reshape(bins, pairs)[:, : len(src)]
        else:
            listed = traffic.arrivals[: int(state["num_arrivals"])]
            columns = (listed[name].copy() for name in ("pair", "bin", "bytes"))
            found = ListedBytes((bins, len(src)), *columns)
        return TrafficRecord(1 << int(state["bin_bits"]), src, dst, found)

    def messages(self) -> MessageRecords | None:
        """Every message, sorted by (end, key), where they were to be recorded."""
        counts = self._columns.scalars
        if not counts["keeps_messages"]:
            return None
        kept = self._columns.kept[: int(counts["num_kept"])]
        # Networks report in no particular order; by key, what ends together is in the same order in every
        # run.
        kept = kept[np.lexsort((kept["key_low"], kept["key_high"], kept["end"]))]
        src, dst = self._pairs()
        high, pair = kept["key_high"], kept["pair"]
        return MessageRecords(
            job=(high >> 51).astype(np.int32),
            iteration=((high >> 31) & ((1 << 20) - 1)).astype(np.int32),
            op=(high & ((1 << 31) - 1)).astype(np.int32),
            src=src[pair],
            dst=dst[pair],
            size_bytes=kept["size"].copy(),
            start_ps=kept["start"].copy(),
            end_ps=kept["end"].copy(),
        )
