"""Groups in flight on the client's side, as columns: what each flow of them is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.kernel import record
from cosim.network.flows import I32, I64, FlowGroup, FlowTable
from cosim.topology.graph import Topology

_GROUP = record("open_group")
_ROW = np.dtype(
    [
        ("size", "i8"),
        ("delay", "i8"),
        ("reaction", "i8"),
        ("src", "i4"),
        ("dst", "i4"),
        ("channel", "i4"),
        ("pad", "i4"),
    ]
)


class GrowingArray:
    """An array that grows."""

    def __init__(self, dtype: Any) -> None:
        self.array: NDArray[Any] = np.zeros(64, dtype)
        self.used = 0

    def room(self, need: int) -> None:
        """Make it at least that long."""
        if need > len(self.array):
            new = np.zeros(max(need, 2 * len(self.array)), self.array.dtype)
            new[: len(self.array)] = self.array
            self.array = new

    def take(self, count: int) -> tuple[int, NDArray[Any]]:
        """(First, view) of that many more."""
        first = self.used
        self.used = first + count
        self.room(self.used)
        return first, self.array[first : self.used]


class OpenGroups:
    """Tables, endpoints and open groups. A table or a list of endpoints is kept once, for good."""

    def __init__(self) -> None:
        self._rows = GrowingArray(_ROW)
        self._endpoints = GrowingArray(np.int32)
        self._groups = GrowingArray(_GROUP)
        self._tables: dict[int, tuple[FlowTable, int]] = {}
        self._lists: dict[bytes, int] = {}
        # Tables with their endpoints whose paths were told: an iteration opens the same groups as the one
        # before.
        self._bound: set[tuple[int, int, int]] = set()
        self._unsent: list[tuple[I32, I32, I32]] = []
        self.open_groups: dict[int, FlowGroup] = {}

    def open(self, group: FlowGroup) -> None:
        """Make a group known.

        Raises
        ------
        NetworkError
            Its handle is in use, or its endpoints don't fit its table.
        """
        handle, table = group.handle, group.table
        if handle in self.open_groups:
            raise NetworkError(f"flow group handle {handle} is still in use")
        if len(group.endpoints) != table.num_participants:
            raise NetworkError(
                f"a table of {table.num_participants} participants was bound to "
                f"{len(group.endpoints)} endpoints"
            )
        row, endpoint = self._table(table), self._list(group.endpoints)
        self._groups.room(handle + 1)
        self._groups.array[handle] = (
            *group.key,
            *(group.coflow, group.coflow_bytes, group.weight),
            *(row, endpoint, table.num_flows),
            *(group.job, group.channel, group.priority, table.is_flat),
        )
        self.open_groups[handle] = group
        if (row, endpoint, group.channel) not in self._bound:
            self._bound.add((row, endpoint, group.channel))
            ends = np.asarray(group.endpoints, np.int32)
            self._unsent.append((ends[table.src], ends[table.dst], table.channel + group.channel))

    def _table(self, table: FlowTable) -> int:
        known = self._tables.get(id(table))
        if known is None:
            first, rows = self._rows.take(table.num_rows)
            rows["src"], rows["dst"], rows["channel"] = table.src, table.dst, table.channel
            rows["size"], rows["delay"], rows["reaction"] = (
                table.size_bytes,
                table.delay_ps,
                table.reaction_ps,
            )
            # With the table itself: while it lives here no other one gets its id.
            known = self._tables[id(table)] = (table, first)
        return known[1]

    def _list(self, endpoints: I32) -> int:
        content = np.asarray(endpoints, np.int32).tobytes()
        known = self._lists.get(content)
        if known is None:
            known, into = self._endpoints.take(len(endpoints))
            into[:] = endpoints
            self._lists[content] = known
        return known

    def new_triples(self) -> tuple[I32, I32, I32] | None:
        """(Source, destination, channel) of groups opened since the last call, where they may be new."""
        if not self._unsent:
            return None
        src, dst, channel = (np.concatenate([part[c] for part in self._unsent]) for c in range(3))
        self._unsent = []
        return src.astype(np.int32), dst.astype(np.int32), channel.astype(np.int32)

    def columns(self, handle: I32, index: I64) -> dict[str, NDArray[Any]]:
        """What the flows (handle, index) are, as :data:`cosim.protocol.flat_flows.DEFAULTS` names it.

        Raises
        ------
        NetworkError
            A handle that is not open, or an index beyond its table.
        """
        handles = np.unique(handle) if len(handle) > 1 else handle
        for one in handles.tolist():
            group = self.open_groups.get(one)
            if group is None:
                raise NetworkError(f"a flow of unknown group handle {one}")
            mine = index[handle == one]
            if not 0 <= int(mine.min()) <= int(mine.max()) < group.table.num_flows:
                raise NetworkError(f"flow index beyond the {group.table.num_flows} flows of group {one}")
        groups = self._groups.array[handle]
        row = index.copy()
        # Of a flat table a flow's index is its row; repeated blocks have to be looked up.
        if not groups["flat"].all():
            for one in np.unique(handle[groups["flat"] == 0]).tolist():
                chosen = handle == one
                row[chosen] = self.open_groups[one].table.row_of(index[chosen])
        rows = self._rows.array[groups["row"] + row]
        endpoints = self._endpoints.array
        return {
            "key_high": groups["key_high"],
            "key_low": groups["key_low"] + index,
            "src": endpoints[groups["endpoint"] + rows["src"]],
            "dst": endpoints[groups["endpoint"] + rows["dst"]],
            "size_bytes": rows["size"],
            "channel": rows["channel"] + groups["channel"],
            "priority": groups["priority"],
            "weight": groups["weight"],
            "job": groups["job"],
            "coflow": groups["coflow"],
            "coflow_bytes": groups["coflow_bytes"],
            "reaction_delay_ps": rows["reaction"],
            "delay_ps": rows["delay"],
        }

    @property
    def rows(self) -> NDArray[Any]:
        """A row for each group, by handle."""
        return self._groups.array

    def ended(self, handle: I32) -> list[int]:
        """Groups of these whose flows have all completed; they are closed."""
        left = self._groups.array["left"]
        ended = list(dict.fromkeys(handle[left[handle] == 0].tolist()))
        for one in ended:
            del self.open_groups[one]
        return ended


def known_paths(
    topology: Topology, triples: tuple[I32, I32, I32], sent: set[tuple[int, int, int]]
) -> tuple[list[tuple[int, int, int]], I64, I32]:
    """Triples that are not in ``sent`` yet, and their links in CSR form; adds them to it."""
    new = []
    # Each once, in the order in which they came: the same run tells the same paths in the same messages.
    for triple in dict.fromkeys(zip(*(column.tolist() for column in triples), strict=True)):
        if triple[0] != triple[1] and triple not in sent:
            sent.add(triple)
            new.append(triple)
    columns = np.array(new, np.int32).reshape(-1, 3)
    ptr, links = topology.paths(*(np.ascontiguousarray(columns[:, c]) for c in range(3)))
    return new, ptr, links
