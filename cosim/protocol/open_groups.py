"""Groups in flight on the client's side, as columns: what each flow of them is."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.kernel import Columns
from cosim.network.flows import I32, I64, FlowGroup, FlowTable
from cosim.topology.graph import Topology

_GROUP = Struct("=4qd4q4i")
"""``struct open_group``."""


class OpenGroups(Columns):
    """Tables, endpoints and open groups. A table or a list of endpoints is kept once, for good."""

    container = "given_flows"

    def __init__(self) -> None:
        super().__init__()
        self._tables: dict[int, tuple[FlowTable, int]] = {}
        self._lists: dict[bytes, int] = {}
        self._used = {"rows": 0, "endpoints": 0}
        # Tables with their endpoints whose paths were told: an iteration opens the same groups as the one
        # before.
        self._bound: dict[tuple[int, bytes, int], tuple[int, int]] = {}
        self._unsent: list[tuple[I32, I32, I32]] = []
        self._raw = memoryview(b"")
        self._repeating: set[int] = set()
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
        bound = id(table), np.asarray(group.endpoints, np.int32).tobytes(), group.channel
        row, endpoint = self._bound.get(bound) or self._bind(group, bound)
        if handle >= len(self.groups):
            rows: Any = self.lengthen("groups", handle + 1)
            self._raw = memoryview(rows).cast("B")
        flows = table.num_flows
        _GROUP.pack_into(
            self._raw,
            handle * _GROUP.size,
            *group.key,
            group.coflow,
            group.coflow_bytes,
            group.weight,
            row,
            endpoint,
            flows,
            flows,
            group.job,
            group.channel,
            group.priority,
            0,
        )
        if not table.is_flat:
            self._repeating.add(handle)
        self.open_groups[handle] = group

    def _bind(self, group: FlowGroup, bound: tuple[int, bytes, int]) -> tuple[int, int]:
        """Where a group's rows and endpoints are; its paths are to be told."""
        table, ends = group.table, np.asarray(group.endpoints, np.int32)
        if len(ends) != table.num_participants:
            raise NetworkError(
                f"a table of {table.num_participants} participants was bound to {len(ends)} endpoints"
            )
        self._unsent.append((ends[table.src], ends[table.dst], table.channel + group.channel))
        made = self._bound[bound] = self._table(table), self._list(ends)
        return made

    def _extend(self, name: str, count: int) -> tuple[int, NDArray[Any]]:
        """(First, view) of that many more."""
        first = self._used[name]
        self._used[name] = first + count
        return first, self.lengthen(name, first + count)[first : first + count]

    def _table(self, table: FlowTable) -> int:
        known = self._tables.get(id(table))
        if known is None:
            first, rows = self._extend("rows", table.num_rows)
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
        content = endpoints.tobytes()
        known = self._lists.get(content)
        if known is None:
            known, into = self._extend("endpoints", len(endpoints))
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

    def rows_of(self, handle: I32, index: I64) -> I64:
        """The row of each flow in its table."""
        if not self._repeating:
            return index
        row = index.copy()
        for one in self._repeating.intersection(handle.tolist()):
            chosen = handle == one
            table = self.open_groups[one].table
            row[chosen] = table.row_of(np.clip(index[chosen], 0, table.num_flows - 1))  # others are refused
        return row

    def refusal(self, handle: int) -> NetworkError:
        """What is wrong with a flow."""
        group = self.open_groups.get(handle)
        if group is None:
            return NetworkError(f"a flow of unknown group handle {handle}")
        return NetworkError(f"flow index beyond the {group.table.num_flows} flows of group {handle}")

    def close(self, handle: int) -> None:
        """A group's flows have all completed."""
        del self.open_groups[handle]
        self._repeating.discard(handle)


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
