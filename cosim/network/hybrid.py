"""``hybrid``: two networks as one. Scale-up domains (NVLink) in one, everything else in the other.

A flow belongs to the network whose links its path takes; each network is opened on its own links only, so
that ns-3 builds no NVSwitches. A group of flows (a collective's phase) that lies in one network is handed to
it whole, dependencies included; of one that lies in both, each gets its rows, and dependencies are followed
here, as the engine would. No link is in both, so nothing is shared but time.

**Time.** While flows are under way in one network only, it runs by itself. Else both go to the next
completion that one of them tells of (peek): the one that can't tell (a simulator elsewhere) first, then the
other to what was granted. What completes at an instant that is granted already is taken in rounds, as
everywhere (all completions, then all starts), and both networks do one round at a time: each is given a mark
of our own that starts then, at whose completion it stops. So two networks of a model do what one of it would,
order within an instant included; but for a network that can't peek, which may be a round ahead where what it
carries completes at the picosecond of something in the other.

Not modelled: links that carry both kinds of paths. A path that changes from scale-up to scale-out links is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cosim.errors import CausalityError, NetworkError
from cosim.network.carrier import HybridChild
from cosim.network.carriers import carriers_together
from cosim.network.flows import I32, I64, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.merged import ROLES, TwoNetworks, can_peek
from cosim.network.releaser import Releaser
from cosim.network.shares import Mask, Share, share_of
from cosim.network.simulator import (
    Advance,
    NetworkSimulator,
    NetworkStatistics,
)
from cosim.network.store import COMPLETED, STARTED
from cosim.topology.graph import Topology
from cosim.units import NEVER

_MOST_REPORTED = 1 << 18  # completions in one answer: the caller takes them, and asks again


@dataclass(eq=False, slots=True)
class _SplitGroup:
    """A group: which network carries each row, and whether its dependencies are followed here."""

    group: FlowGroup
    carrier: I32
    alone: int | None
    released: bool
    left: int


class HybridNetwork(TwoNetworks):
    """The two networks behind the seam. See :class:`~cosim.network.simulator.NetworkSimulator`."""

    def __init__(self, scale_up: NetworkSimulator, scale_out: NetworkSimulator) -> None:
        super().__init__(scale_up, scale_out)
        self._children: tuple[HybridChild, ...] = ()
        self._closed = False
        self._granted = 0
        self._releaser = Releaser()
        self._groups: dict[int, _SplitGroup] = {}
        self._carriers: dict[tuple[int, bytes, int], tuple[FlowTable, I32]] = {}
        self._shares: dict[tuple[int, str, bool, bytes], Share] = {}

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`.

        Raises
        ------
        TopologyError
            The topology has no scale-up domains, or nothing else.
        NetworkError
            Neither network peeks.
        """
        if self._children:
            raise NetworkError("hybrid: a network is opened once")
        if options:
            raise NetworkError(f"hybrid has no options; got {', '.join(sorted(options))}")
        self._topology = topology
        there = [network.describe() for network in self.networks]
        self._open_parts(topology, seed)
        children = [
            HybridChild(network, role, can_peek(network), what.dependent_flows, what.name)
            for network, role, what in zip(self.networks, ROLES, there, strict=True)
        ]
        if not any(child.peeks for child in children):
            names = " and ".join(child.name for child in children)
            raise NetworkError(f"hybrid: of {names}, one has to say when its next completion comes (peek)")
        self._children = tuple(children)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._check_open("advance")
        if horizon_ps < self._granted:
            raise CausalityError(f"hybrid: horizon {horizon_ps} ps is before the grant {self._granted} ps")
        for group in flows.groups:
            self._open_group(group)
        self._take(flows)
        parts: list[Completions] = []
        bound, count = NEVER, 0
        while self._granted < min(horizon_ps, bound) and count < _MOST_REPORTED:
            for child, done in self._round(min(horizon_ps, bound)):
                if len(done):
                    part, react = self._completed(child, done)
                    parts.append(part)
                    bound, count = min(bound, react), count + len(part)
        if len(parts) == 1:
            return Advance(self._granted, parts[0])
        empty = np.empty(0, np.int64)
        columns = [np.concatenate([empty, *(getattr(p, name) for p in parts)]) for name in _COLUMNS]
        return Advance(self._granted, Completions(columns[0].astype(np.int32), *columns[1:]))

    def peek(self) -> int | None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._check_open("peek")
        if not all(child.peeks for child in self._children):
            raise NetworkError(f"{self.describe().name} does not peek")
        times = [time for child in self._children if (time := child.peek()) is not None]
        return min(times, default=None)

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return any(child.network.has_work() or not child.outbox.is_empty for child in self._children)

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._check_open("statistics")
        return super().statistics()

    def _own_flows(self) -> Sequence[int]:
        return [child.bells for child in self._children]

    def _check_open(self, what: str) -> None:
        if not self._children or self._closed:
            raise NetworkError(f"hybrid: {what} needs an open network")

    # -- time ----------------------------------------------------------------------------------------

    def _round(self, limit: int) -> Iterator[tuple[HybridChild, Completions]]:
        """Let each network go as far as the others allow; ``_granted`` is where they are then."""
        busy = [child for child in self._children if child.running]
        if len(busy) == 1:
            # Nothing starts in the other one before this one reports something: no need to go side by side.
            yield busy[0], busy[0].advance(limit)
            self._granted = max(self._granted, busy[0].granted)  # it may have been behind
            return
        given = [child for child in busy if child.peeks and not child.outbox.is_empty]
        # Whatever completes next may have the caller start something in either: nobody goes beyond it.
        coming = [time for child in busy if child.peeks and (time := child.peek()) is not None]
        to = min([limit, *coming])
        if to <= self._granted:
            # Both do this round before what completes in it starts anything.
            due = [child for child in busy if child.peeks or not child.outbox.is_empty]
            yield from [(child, child.one_round(self._granted)) for child in due]
            return
        if not all(child.peeks for child in busy):
            # What was given for this instant starts before what one that can't peek may complete at it.
            for child in given:
                child.one_round(self._granted)
        # Who can't peek goes first: as far as it got is as far as the other may go.
        for child in sorted(busy, key=lambda one: one.peeks):
            while child.granted < to:
                yield child, child.advance(to)
                if not child.peeks:
                    to = max(child.granted, self._granted)
        self._granted = to

    # -- flows in ------------------------------------------------------------------------------------

    def _open_group(self, group: FlowGroup) -> None:
        if group.handle in self._groups:
            raise NetworkError(f"flow group handle {group.handle} is still in use")
        table = group.table
        carrier = self._carried(group)
        alone = int(carrier[0]) if len(carrier) and (carrier == carrier[0]).all() else None
        children = self._children if alone is None else self._children[alone : alone + 1]
        waits = group.release == "network" and bool(len(table.dep_distance))
        released = waits and (alone is None or not children[0].releases)
        for child in children:
            mine = carrier == self._children.index(child)
            if alone is not None and not released:
                child.open(group, Share(table, table), group.release)
            elif mine.any():
                child.open(group, self._share(table, child, mine, released), "caller")
        if released:
            self._releaser.open(group)
        self._groups[group.handle] = _SplitGroup(group, carrier, alone, released, table.num_flows)

    def _carried(self, group: FlowGroup) -> I32:
        """The network of each row.

        Raises
        ------
        NetworkError
            A path takes links of both; or the table has another number of participants.
        """
        table = group.table
        key = id(table), group.endpoints.tobytes(), group.channel
        known = self._carriers.get(key)
        if known is not None:
            return known[1]
        ends = table.ends(group.endpoints, group.channel)
        carrier = carriers_together(self._topology, self._scale_up, *ends)
        self._carriers[key] = table, carrier
        return carrier

    def _share(self, table: FlowTable, child: HybridChild, rows: Mask, released: bool) -> Share:
        """The same table for the same rows, for networks keep what they saw."""
        key = id(table), child.role, released, rows.tobytes()
        known = self._shares.get(key)
        if known is None:
            known = self._shares[key] = share_of(table, rows, released)
        return known

    def _take(self, flows: FlowBatch) -> None:
        if not len(flows.start_handle):
            return
        first = int(flows.start_ps.min())
        if first < self._granted:
            raise CausalityError(
                f"hybrid: a flow was given for {first} ps, but {self._granted} ps had been granted"
            )
        columns = flows.start_handle, flows.start_index, flows.start_ps, flows.cause_ps
        self._start(*columns)
        for handle, at in _by_handle(flows.start_handle):
            group = self._groups[handle].group
            if not self._groups[handle].released:
                continue
            index, table = flows.start_index[at], group.table
            waiting = np.diff(table.dep_ptr)[table.row_of(index)] > 0
            if waiting.any():
                raise NetworkError(
                    f"hybrid: flow {index[waiting][0]} of group {handle} was given, "
                    "but has dependencies that the network follows"
                )
            self._follow(flows.start_handle[at], index, flows.start_ps[at], STARTED)

    def _start(self, handle: I32, index: I64, start_ps: I64, cause_ps: I64) -> None:
        """Have flows started by the networks that carry them."""
        for one, at in _by_handle(handle):
            opened = self._groups.get(one)
            if opened is None:
                raise NetworkError(f"a flow of unknown group handle {one}")
            table, flows = opened.group.table, index[at]
            if not 0 <= int(flows.min()) <= int(flows.max()) < table.num_flows:
                raise NetworkError(f"flow index beyond the {table.num_flows} flows of group {one}")
            row = table.row_of(flows) if opened.alone is None or opened.released else flows
            for number, child in enumerate(self._children):
                if opened.alone is None:
                    mine = np.flatnonzero(opened.carrier[row] == number)
                elif opened.alone == number:
                    mine = np.arange(len(at))
                else:
                    continue
                if len(mine):
                    inner = child.shares[one].inward(row[mine], flows[mine])
                    child.start(handle[at[mine]], inner, start_ps[at[mine]], cause_ps[at[mine]])

    def _follow(self, handle: I32, index: I64, time_ps: I64, kind: int) -> None:
        """Start what waited for this."""
        for released in self._releaser.released_by(handle, index, time_ps, kind):
            self._start(*released)

    # -- completions out -----------------------------------------------------------------------------

    def _completed(self, child: HybridChild, done: Completions) -> tuple[Completions, int]:
        """Completions in the caller's numbers, and the earliest that the caller may react to one."""
        index, bound, ended = np.empty(len(done), np.int64), NEVER, []
        for handle, at in _by_handle(done.handle):
            opened, share = self._groups[handle], child.shares[handle]
            table = opened.group.table
            index[at] = share.outward(done.index[at])
            reaction = table.reaction_ps[table.row_of(index[at])]
            # Cut to what is left up to NEVER before it is added: the sum would leave 64 bits.
            bound = min(bound, int((np.minimum(reaction, NEVER - done.time_ps[at]) + done.time_ps[at]).min()))
            opened.left -= len(at)
            child.left[handle] -= len(at)
            if child.left[handle] == 0:
                del child.left[handle], child.shares[handle]
                child.running.discard(handle)
            if opened.released:
                self._follow(done.handle[at], index[at], done.time_ps[at], COMPLETED)
            if opened.left == 0:
                ended.append(handle)
        for handle in ended:
            if self._groups.pop(handle).released:
                self._releaser.close(handle)
        return Completions(done.handle, index, done.start_ps, done.time_ps, done.since()), bound


_COLUMNS = ("handle", "index", "start_ps", "time_ps", "cause_ps")


def _by_handle(handle: I32) -> Iterator[tuple[int, I64]]:
    """(handle, where it is) of each one."""
    order = np.argsort(handle, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(handle[order])) + 1) if len(handle) else ():
        yield int(handle[at[0]]), at
