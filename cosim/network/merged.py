"""What networks that carry parts of one topology can do and have to say, put together in its link numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np

from cosim.errors import ScenarioError
from cosim.fabric.changes import LinkChange, RouteChange, changes_within
from cosim.network.flows import F64, I64
from cosim.network.simulator import (
    Capabilities,
    NetworkSimulator,
    NetworkStatistics,
    QueueSample,
    RateSample,
)
from cosim.topology.graph import Topology
from cosim.topology.part import part_of
from cosim.topology.scale_up import scale_up_links

ROLES = "scale-up", "scale-out"
_SETTINGS = "scale_up", "scale_out"


def can_peek(network: NetworkSimulator) -> bool:
    """Whether to ask it; not one with a log, whose answers have to be the same when that is played."""
    return network.describe().peek and not network.elsewhere


class TwoNetworks(NetworkSimulator):
    """Two networks that carry links of one topology each: those of scale-up domains, and all others. What is
    asked of it they answer, each of its own links. See :class:`~cosim.network.simulator.NetworkSimulator`.
    """

    _topology: Topology

    def __init__(self, scale_up: NetworkSimulator, scale_out: NetworkSimulator) -> None:
        super().__init__()
        self.networks = (scale_up, scale_out)

    def _open_parts(self, topology: Topology, seed: int) -> None:
        self._scale_up = scale_up_links(topology)
        masks = (self._scale_up, ~self._scale_up)
        self._links = [np.flatnonzero(links) for links in masks]
        """The whole's numbers of each one's links."""
        for network, role, links in zip(self.networks, ROLES, masks, strict=True):
            network.open(part_of(topology, links, role), seed)

    @abstractmethod
    def _own_flows(self) -> Sequence[int]:
        """How many flows each was given that are not the caller's."""

    def parts(self) -> Sequence[NetworkSimulator]:
        """Both."""
        return self.networks

    def describe(self) -> Capabilities:
        """What both can do."""
        one, two = self.networks
        first, second = one.describe(), two.describe()
        return Capabilities(
            name=f"hybrid of {first.name} and {second.name}",
            dependent_flows=True,
            peek=can_peek(one) and can_peek(two),
            deterministic=first.deterministic and second.deterministic,
            quantum_ps=gcd(first.quantum_ps, second.quantum_ps),
            queues=first.queues or second.queues,
            rates=first.rates and second.rates,
            live_changes=first.live_changes and second.live_changes,
            switch_ends=first.switch_ends and second.switch_ends,
            computations=first.computations,
            live_control=first.live_control or second.live_control,
            link_changes=all(
                net.elsewhere or what.link_changes for net, what in ((one, first), (two, second))
            ),
        )

    def check_queues(self, topology: Topology, links: I64) -> None:
        """Refuse links of one that keeps no queues: of scale-up domains are those of the first.

        Raises
        ------
        ScenarioError
            Says which link, and who carries it.
        """
        inside = scale_up_links(topology)[links]
        for name, network, mine in zip(
            _SETTINGS, self.networks, (links[inside], links[~inside]), strict=True
        ):
            there = network.describe()
            if len(mine) and not there.queues:
                raise ScenarioError(
                    f"{name} is {there.name}, which keeps no queues over time, and "
                    f"{topology.link_name(int(mine[0]))} is a link of it",
                    hint=f"name links of the other part, or give {name} a network that does: congestion",
                )

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """Queues of links, from the network that has the link."""
        found = np.zeros((len(QueueSample._fields), len(links)))
        for network, numbers in zip(self.networks, self._links, strict=True):
            mine = np.isin(links, numbers)
            if mine.any():
                found[:, mine] = network.queues(np.searchsorted(numbers, links[mine]), now_ps)
        return QueueSample(*found)

    def rates(self) -> RateSample:
        """Rates of both networks' connections."""
        parts = [network.rates() for network in self.networks]
        return RateSample(*map(np.concatenate, zip(*parts, strict=True)))

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """Tell each of what changes of its own links."""
        for network, numbers in zip(self.networks, self._links, strict=True):
            own = np.full(self._topology.num_links, -1, np.int32)
            own[numbers] = np.arange(len(numbers))
            if mine := [*changes_within(changes, own)]:
                network.change(mine)

    def tune(self, values: Mapping[str, Any], now_ps: int) -> None:
        """Tune each that has a control.

        Raises
        ------
        NetworkError
            None has one; or as they say.
        """
        having = [network for network in self.networks if network.describe().live_control]
        if not having:
            super().tune(values, now_ps)
        for network in having:
            network.tune(values, now_ps)

    @property
    def takes_paths(self) -> bool:
        """Whether both do."""
        return all(network.takes_paths for network in self.networks)

    def statistics(self) -> NetworkStatistics:
        """Those of both, without the flows that are not the caller's."""
        found = []
        for network, links, own in zip(self.networks, self._links, self._own_flows(), strict=True):
            one = network.statistics()
            started, completed = one.flows_started - own, one.flows_completed - own
            found.append((replace(one, flows_started=started, flows_completed=completed), links))
        return merge(found, self._topology.num_links)

    def close(self) -> None:
        """Close both, also where one fails to."""
        self._closed = True
        with ExitStack() as stack:
            for network in self.networks:
                stack.callback(network.close)


def merge(parts: Sequence[tuple[NetworkStatistics, I64]], num_links: int) -> NetworkStatistics:
    """Each part comes with the whole's number of each of its links.

    Bins are as wide as the widest of the parts. A column that a part doesn't have is 0 on its links.
    """
    bin_ps = max(found.bin_ps for found, _ in parts)
    busy = [_rebin(found.busy_ps, found.bin_ps, bin_ps) for found, _ in parts]
    link_bytes = np.zeros(num_links, np.int64)
    busy_ps = np.zeros((max(len(part) for part in busy), num_links), np.int64)
    extra: dict[str, F64] = {}
    for (found, links), part in zip(parts, busy, strict=True):
        link_bytes[links] = found.link_bytes
        busy_ps[: len(part), links] = part
        for name, values in found.extra.items():
            extra.setdefault(name, np.zeros(num_links, np.float64))[links] = values
    return NetworkStatistics(
        link_bytes,
        bin_ps,
        busy_ps,
        sum(found.flows_started for found, _ in parts),
        sum(found.flows_completed for found, _ in parts),
        sum(found.events for found, _ in parts),
        extra,
        next((found.balancing for found, _ in parts if found.balancing is not None), None),
    )


def _rebin(busy: I64, old_ps: int, new_ps: int) -> I64:
    """Wider bins; one that two of them share goes to both by its time in each."""
    if old_ps == new_ps:
        return busy
    total = np.zeros((len(busy) + 1, busy.shape[1]), np.int64)
    np.cumsum(busy, axis=0, out=total[1:])
    count = -(-len(busy) * old_ps // new_ps)
    sums = np.empty((count + 1, busy.shape[1]), np.int64)
    for k in range(count + 1):
        whole, rest = divmod(k * new_ps, old_ps)
        at = min(whole, len(busy))
        sums[k] = total[at]
        if rest and at < len(busy):
            sums[k] += np.rint(busy[at] * (rest / old_ps)).astype(np.int64)
    return np.asarray(np.diff(sums, axis=0), np.int64)
