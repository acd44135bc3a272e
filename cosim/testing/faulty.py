"""A network in front of another one that lets chosen completions come late.

For showing that the loop is closed: what a caller does after a flow must move with that flow. The caller
has to release dependent flows, for the network behind would not see the change; so the capability
is not there, whatever the other network can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.network.flows import Completions, FlowBatch, FlowGroup
from cosim.network.simulator import Advance, Capabilities, NetworkSimulator, NetworkStatistics
from cosim.topology.graph import Topology
from cosim.units import NEVER


@dataclass(frozen=True, slots=True)
class _Late:
    handle: int
    index: int
    start_ps: int
    time_ps: int
    react_ps: int


class FaultyNetwork(NetworkSimulator):
    """``inner`` with the completions of the flows in ``delay_ps`` (flow key -> picoseconds) reported late.

    A flow's key is its group's key plus its index: ``(key[0], key[1] + index)``. Other flows are not
    touched: the network behind goes on as if nothing had happened. ``applied`` lists (key, when it would
    have completed, when it did).

    Raises
    ------
    NetworkError
        A delay below zero.

    Examples
    --------
    A message that arrives a microsecond late; what waits for it in the caller moves with it:

    >>> import numpy as np
    >>> from cosim.network.fair_share import FairShareNetwork
    >>> from cosim.network.flows import FlowBatch, FlowGroup, flat_table
    >>> from cosim.testing import star
    >>> from cosim.units import NEVER
    >>> network = FaultyNetwork(FairShareNetwork(), {(0, 0): 1_000_000})
    >>> network.open(star())
    >>> ends, zero = np.array([0, 1], np.int32), np.zeros(1, np.int64)
    >>> group = FlowGroup(0, flat_table([0], [1], [1250]), ends, key=(0, 0))
    >>> answer = network.advance(FlowBatch([group], zero.astype(np.int32), zero, zero, zero), NEVER)
    >>> while not len(answer.completions):
    ...     answer = network.advance(FlowBatch(), NEVER)
    >>> answer.completions.time_ps.tolist(), network.applied
    ([4000000], [((0, 0), 3000000, 4000000)])
    """

    def __init__(self, inner: NetworkSimulator, delay_ps: Mapping[tuple[int, int], int]) -> None:
        for key, delay in delay_ps.items():
            if delay < 0:
                raise NetworkError(f"flow {key} can't complete {-delay} ps early; a delay is at least 0 ps")
        self._inner = inner
        self._delay = dict(delay_ps)
        self._chosen: dict[int, tuple[FlowGroup, dict[int, int]]] = {}
        self._late: list[_Late] = []
        self.applied: list[tuple[tuple[int, int], int, int]] = []

    def describe(self) -> Capabilities:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        there = self._inner.describe()
        return replace(
            there,
            name=f"faulty {there.name}",
            dependent_flows=False,
            peek=False,
            queues=False,
            rates=False,
            live_changes=False,
            quantum_ps=1,
            symmetric=there.symmetric and not self._delay,
        )

    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._inner.open(topology, seed, options)

    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        for group in flows.groups:
            self._note(group)
        bound = min((late.react_ps for late in self._late), default=NEVER)
        granted, done = self._inner.advance(flows, min(horizon_ps, bound))
        kept = np.ones(len(done), np.bool_)
        for k in np.flatnonzero(np.isin(done.handle, list(self._chosen))).tolist():
            kept[k] = not self._delayed(done, k)
        due = [late for late in self._late if late.time_ps <= granted]
        self._late = [late for late in self._late if late.time_ps > granted]
        done = done.take(kept)
        times = np.array([late.time_ps for late in due], np.int64)
        return Advance(
            granted,
            Completions(
                np.append(done.handle, np.array([late.handle for late in due], np.int32)),
                np.append(done.index, np.array([late.index for late in due], np.int64)),
                np.append(done.start_ps, np.array([late.start_ps for late in due], np.int64)),
                np.append(done.time_ps, times),
                np.append(done.since(), times),
            ),
        )

    def _note(self, group: FlowGroup) -> None:
        if group.release == "network" and len(group.table.dep_distance):
            raise NetworkError(
                f"{self.describe().name} does not release flows: group {group.handle} needs release='caller'"
            )
        high, low = group.key
        chosen = {
            key[1] - low: delay
            for key, delay in self._delay.items()
            if key[0] == high and low <= key[1] < low + group.table.num_flows
        }
        self._chosen.pop(group.handle, None)
        if chosen:
            self._chosen[group.handle] = (group, chosen)

    def _delayed(self, done: Completions, k: int) -> bool:
        group, chosen = self._chosen[int(done.handle[k])]
        index, time = int(done.index[k]), int(done.time_ps[k])
        if not chosen.get(index):
            return False
        late = time + chosen[index]
        row = int(group.table.row_of(np.array([index]))[0])
        react = min(late + int(group.table.reaction_ps[row]), NEVER)
        self._late.append(_Late(group.handle, index, int(done.start_ps[k]), late, react))
        self.applied.append(((group.key[0], group.key[1] + index), time, late))
        return True

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        return self._inner.statistics()

    def close(self) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._inner.close()
