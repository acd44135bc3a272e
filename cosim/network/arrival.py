"""A network that knows, when a message starts, when it arrives: base of such models, in plain Python.

A model of this kind needs one method::

    class FixedNetwork(ArrivalNetwork):
        name = "fixed"

        def arrival(self, message, start_ps):
            return start_ps + 10_000_000

It may remember what it gave before, so that messages queue. The base keeps the rules of the seam
(:mod:`cosim.network.simulator`): who is told what and when, who comes first, marks, the order of a channel,
and what is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cosim.errors import CausalityError, NetworkError
from cosim.network.flows import Completions, FlowBatch, FlowGroup
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology
from cosim.units import NEVER


class Message(NamedTuple):
    """What a network is told of a message: between which endpoints, how long it is, and over which ``links``
    the topology's routing leads it. Messages of one job, source, destination and ``channel`` arrive in the
    order in which they start.
    """

    src: int
    dst: int
    size_bytes: int
    links: tuple[int, ...]
    channel: int
    job: int
    priority: int
    weight: float


class _ArrivingGroup:
    """A group that is under way: its messages by row, and how many of its flows are still to complete."""

    def __init__(self, group: FlowGroup, topology: Topology) -> None:
        table = group.table
        src, dst = group.endpoints[table.src], group.endpoints[table.dst]
        channel = table.channel + group.channel
        ptr, way = topology.paths(src, dst, channel.astype(np.int32))
        path = [tuple(way[first:end].tolist()) for first, end in pairwise(ptr.tolist())]
        job, priority, weight = group.job, group.priority, group.weight
        columns = (column.tolist() for column in (src, dst, table.size_bytes, channel))
        self.messages = [
            Message(source, target, size, links, channel, job, priority, weight)
            for source, target, size, channel, links in zip(*columns, path, strict=True)
        ]
        self.reaction = table.reaction_ps.tolist()
        self.table, self.key = table, group.key
        self.left = table.num_flows
        self.started = np.zeros(table.num_flows, np.bool_)


class _BusyTimes:
    """How long links were busy, in bins that double as time goes on: each link sends its messages one after
    the other, at its rate.
    """

    _BINS = 128

    def __init__(self, topology: Topology) -> None:
        self._rate = topology.link_rate_bps.tolist()
        self._until = [0] * topology.num_links
        self._bits = 20
        self.busy_ps = np.zeros((self._BINS, topology.num_links), np.int64)

    @property
    def bin_ps(self) -> int:
        """How wide a bin is."""
        return 1 << self._bits

    def add(self, link: int, start: int, size_bytes: int) -> None:
        """A message comes to a link."""
        start = max(start, self._until[link])
        end = self._until[link] = start + round(size_bytes * 8e12 / self._rate[link])
        while end > self._BINS << self._bits:
            half = self._BINS // 2
            self.busy_ps[:half] = self.busy_ps[::2] + self.busy_ps[1::2]
            self.busy_ps[half:] = 0
            self._bits += 1
        while start < end:
            b = start >> self._bits
            stop = min(end, (b + 1) << self._bits)
            self.busy_ps[b, link] += stop - start
            start = stop


class ArrivalNetwork(NetworkSimulator):
    """A network that is asked for each message, at its start, when it arrives.

    Messages come in the order in which they start, those of one instant in the order of their causes and
    keys. ``topology`` and ``seed`` are those of the run.
    """

    name: ClassVar[str]
    topology: Topology
    seed: int

    @abstractmethod
    def arrival(self, message: Message, start_ps: int) -> int:
        """When the last byte of a message that starts now arrives, ps. Not asked for messages to oneself."""

    def begin(self) -> None:
        """Called before the first message."""

    _granted: int | None = None
    """Up to when all is done; None: not open."""

    def describe(self) -> Capabilities:
        """The engine releases what waits: see :class:`~cosim.network.simulator.Capabilities`."""
        return Capabilities(self.name, dependent_flows=False)

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Begin. See :class:`~cosim.network.simulator.NetworkSimulator`."""
        if self._granted is not None:
            raise NetworkError(f"{self.name} is open already")
        if options:
            raise NetworkError(f"{self.name} has no option {min(options)!r}")
        self.topology, self.seed = topology, seed
        self._granted = 0
        self._groups: dict[int, _ArrivingGroup] = {}
        # What has yet to start: (start, cause, key, handle, index). What is on its way, numbered as it
        # started: (arrival, number, handle, index, start, cause), and (when the caller may react, number).
        self._starts: list[tuple[int, int, int, int, int, int]] = []
        self._coming: list[tuple[int, int, int, int, int, int]] = []
        self._reactions: list[tuple[int, int]] = []
        self._told: set[int] = set()  # of those numbers in `_reactions`
        self._last: dict[tuple[int, int, int, int], int] = {}
        self._link_bytes = np.zeros(topology.num_links, np.int64)
        self._busy = _BusyTimes(topology)
        self._num_started = self._num_completed = 0
        self.begin()

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """Take the batch, and run. See :mod:`cosim.network.simulator`."""
        if self._granted is None:
            raise NetworkError(f"{self.name} is not open")
        if horizon_ps < self._granted:
            raise CausalityError(f"{self.name}: horizon {horizon_ps} ps, but {self._granted} ps are granted")
        self._take(flows)
        # What is on its way may end the run earlier than the horizon, and so may what starts until then.
        bound = self._bound(horizon_ps)
        while self._starts and self._starts[0][0] < bound:
            now = self._starts[0][0]
            while self._starts and self._starts[0][0] == now:
                self._start(*heappop(self._starts))
            bound = self._bound(horizon_ps)
        self._granted = bound
        return Advance(bound, self._completed(bound))

    def statistics(self) -> NetworkStatistics:
        """Bytes of each link's messages, from when they start."""
        return NetworkStatistics(
            self._link_bytes.copy(),
            self._busy.bin_ps,
            self._busy.busy_ps.copy(),
            self._num_started,
            self._num_completed,
            self._num_started + self._num_completed,
        )

    def close(self) -> None:
        """End. See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._granted = None

    def _take(self, flows: FlowBatch) -> None:
        """Know new groups, and what will start. All is looked at before any of it is taken."""
        new: dict[int, _ArrivingGroup] = {}
        for group in flows.groups:
            if group.handle in self._groups or group.handle in new:
                raise NetworkError(f"{self.name}: handle {group.handle} is in use")
            if group.release == "network" and len(group.table.dep_distance):
                raise NetworkError(f"{self.name} does not release flows that wait for others")
            new[group.handle] = _ArrivingGroup(group, self.topology)
        columns = (flows.start_ps, flows.cause_ps, flows.start_handle, flows.start_index)
        starts = list(zip(*(column.tolist() for column in columns), strict=True))
        taken = set()
        for start, _, handle, index in starts:
            if start < self._granted:
                raise CausalityError(
                    f"{self.name}: a start at {start} ps, but {self._granted} ps are granted"
                )
            found = new.get(handle) or self._groups.get(handle)
            if found is None or not 0 <= index < found.table.num_flows:
                raise NetworkError(f"{self.name}: there is no flow {index} of handle {handle}")
            if found.started[index] or (handle, index) in taken:
                raise NetworkError(f"{self.name}: flow {index} of handle {handle} starts twice")
            taken.add((handle, index))
        self._groups |= new
        for start, cause, handle, index in starts:
            high, low = self._groups[handle].key
            self._groups[handle].started[index] = True
            heappush(self._starts, (start, cause, high, low + index, handle, index))

    def _start(self, start: int, cause: int, high: int, low: int, handle: int, index: int) -> None:
        """A message starts: ask when it arrives."""
        del high, low
        group = self._groups[handle]
        row = int(group.table.row_of(np.array([index]))[0])
        message = group.messages[row]
        time = start  # of a message to oneself
        if message.src != message.dst:
            time, cause = self._arrival(message, start), start
            for link in message.links:
                self._link_bytes[link] += message.size_bytes
                self._busy.add(link, start, message.size_bytes)
        self._num_started += 1
        number = self._num_started
        heappush(self._coming, (time, number, handle, index, start, cause))
        heappush(self._reactions, (time + group.reaction[row], number))

    def _arrival(self, message: Message, start: int) -> int:
        """What the model says, where it can be; not before the message ahead of it on its channel."""
        time: Any = self.arrival(message, start)
        if not isinstance(time, int | np.integer) or not start <= time < NEVER:
            raise NetworkError(
                f"{type(self).__name__}.arrival gave {time!r} for {message}, which starts at {start} ps; "
                "it has to give a whole number of ps, not before the start"
            )
        channel = message.job, message.src, message.dst, message.channel
        self._last[channel] = max(int(time), self._last.get(channel, 0))
        return self._last[channel]

    def _bound(self, horizon_ps: int) -> int:
        """How far it may run: until the caller may react to what it isn't told yet."""
        while self._reactions and self._reactions[0][1] in self._told:
            self._told.remove(heappop(self._reactions)[1])
        return min(horizon_ps, self._reactions[0][0]) if self._reactions else horizon_ps

    def _completed(self, until: int) -> Completions:
        """Tell what arrived, and let go of groups that ended."""
        done = []
        while self._coming and self._coming[0][0] <= until:
            time, number, handle, index, start, cause = heappop(self._coming)
            self._told.add(number)
            done.append((handle, index, start, time, cause))
            group = self._groups[handle]
            group.left -= 1
            if group.left == 0:
                del self._groups[handle]
        self._num_completed += len(done)
        handle_of, *columns = np.array(done, np.int64).reshape(-1, 5).T
        return Completions(handle_of.astype(np.int32), *columns)
