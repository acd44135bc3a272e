"""``fair_share``: flows share links like fluids, max-min fair, with weights and strict priorities.

Life of a flow: it is handed over at its start. Flows of one (job, source, destination, channel) go in
order, one at a time: the next begins to transfer when the one before has *drained*, that is when
its last byte has left the source. While it transfers it has a rate on its whole path at once (cut-through),
the max-min fair one (``kernel/src/sharing.c`` says how); it completes when it has drained, plus the latencies
of its path. A message of zero bytes takes the latency only; a mark (source = destination) takes no time.

Rates change only when a flow begins or drains, once for each instant: when time leaves it; and only on
the links whose share moves. A drain comes at a whole picosecond, rounded up (``kernel/src/drains.c`` says how
dust is told from volume). Where higher classes fill a link, lower ones wait at rate zero.

At an instant, first what drains then, then what starts then. A drain depends on the past only, so it is
taken up to the limit of an advance; a start or a new rate only before it, because the caller may still
give starts there. Dependents are told at the drain, when the completion is certain.

Link statistics: busy time is the fraction of the rate in use; bytes count when a flow drains.
Not modelled: packets, queues, window or rate control and the time it takes to converge, loss; a path's
links give a flow its rate at the same instant.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.context import Context
from cosim.errors import InputError, NetworkError
from cosim.fabric.detours import ChangeList
from cosim.kernel import Columns, kernel, record
from cosim.network.balancing.contract import Balancer
from cosim.network.balancing.named import BalancerName, balancer_field, check_balancer
from cosim.network.compiled import CompiledNetwork, LinkNumber
from cosim.network.contract import NetworkSpec
from cosim.network.core import ChannelNumbers, DrainHeap
from cosim.network.flows import F64, I32, I64, FlowGroup
from cosim.network.simulator import NetworkSimulator, NetworkStatistics, RateSample
from cosim.topology.graph import Topology

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e3
_WEIGHT_UNIT = 10**9  # of a weight of 1; see MIN_WEIGHT: the least is 1,000
_BPS_PER_BYTE_PS = 8e12  # bits per second of a byte in a picosecond
_NONE, _NO_CLASS = kernel.NONE, kernel.NO_CLASS


class Fluid(Columns):
    """The model's state: flows that have started and not drained, on links that share by max-min."""


class FairShareNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "fair_share"
    symmetric = True
    link_changes = live_changes = True
    has_rates = True
    loop = "run_fair"

    def __init__(self, balancer: Balancer | None = None) -> None:
        super().__init__(balancer)
        # A balancer draws lots, and spreads over so many paths only: places that look alike fare otherwise.
        self.symmetric = balancer is None or not balancer.chooses
        self.by_cause = balancer is not None

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        self._numbers = ChannelNumbers()
        self._traits: dict[tuple[int, int], int] = {}
        links = np.zeros(topology.num_links, record("fluid_link"))
        own = self.numbers_of_links(topology.link_rate_bps, topology.link_latency_ps)
        for (_, name), numbers in own.items():
            links[name] = numbers
        links["first"] = _NONE
        self._fluid = Fluid(links=links, drains=DrainHeap(), changes=ChangeList())
        if self._balancing is not None:
            self._fluid.put(balance=self._balancing.columns)
        counts = self._fluid.counts
        counts["free_flow"] = counts["free_member"] = _NONE
        self._changes.fill(self._fluid.changes)

    def numbers_of_links(self, rate_bps: F64, latency_ps: I64) -> dict[LinkNumber, NDArray[Any]]:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return {("links", "capacity"): rate_bps / _BPS_PER_BYTE_PS, ("links", "latency"): latency_ps}

    @property
    def repeated(self) -> int:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: but for a balancer, which remembers."""
        return int(kernel.FAIR_LINKS if self._balancing is None else _NONE)

    @property
    def columns(self) -> Fluid:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return self._fluid

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        numbers = self._numbers.number(job, src, dst, channel)
        fluid, rows = self._fluid, first + len(src)
        fluid.lengthen("channel_of", rows)[first:rows] = numbers
        old = len(fluid.channels)
        fluid.lengthen("channels", len(self._numbers))["head"][old:] = _NONE
        if self._balancing is not None:
            self._balancing.bind(len(self._numbers), numbers, job, src, dst, channel)

    def _reroute(self, so_far: I64) -> None:
        if self._balancing is not None:
            kernel.choose_anew(self._fluid)
        else:
            kernel.move_flows(self.core, self._fluid, so_far)

    def traits(self, group: FlowGroup) -> int:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: weight and priority."""
        if not MIN_WEIGHT <= group.weight <= MAX_WEIGHT:
            raise NetworkError(f"fair_share: weight {group.weight} is not in [{MIN_WEIGHT}, {MAX_WEIGHT}]")
        if not 0 <= group.priority < _NO_CLASS:
            raise NetworkError(
                f"fair_share: priority {group.priority} is not from 0, the class served first, "
                f"to {_NO_CLASS - 1}"
            )
        # Whole numbers: sums of weights are exact, and the same in whatever order flows come and go.
        weight = round(group.weight * _WEIGHT_UNIT)
        number = self._traits.setdefault((weight, group.priority), len(self._traits))
        self._fluid.lengthen("classes", number + 1)[number] = weight, group.priority
        return number

    def _copy_model(self) -> dict[str, Any]:
        fluid, balancing = self._fluid, self._balancing and self._balancing.copied()
        counts = fluid.counts[0]
        flows, members = int(counts["flows_used"]), int(counts["members_used"])
        # What a sharing lists is empty between two of them.
        used = {"flows": flows, "messages": flows, "members": members, "parts": members}
        used["dirty"] = int(counts["num_dirty"])
        used |= dict.fromkeys(("ahead", "kept", "found", "instant", "spare", "other"), 0)
        parts: dict[str, Columns] = {
            "drains": fluid.drains.copy({"entries": flows}),
            "changes": fluid.changes.copy(),
        }
        if balancing is not None:
            parts["balance"] = balancing.columns
        return {
            "_balancing": balancing,
            "_fluid": fluid.copy(used, channels=fluid.channels.copy(), **parts),
        }

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        counts = self._fluid.counts[0]
        changes = counts["num_members"] > 0 and self._fluid.changes.to_come()
        return bool(super().has_work() or changes or self._fluid.drains.count or counts["num_dirty"])

    def rates(self) -> RateSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        head = self._fluid.channels["head"][: len(self._numbers)]
        sends = np.flatnonzero(head != _NONE)
        rate = self._fluid.flows["rate"][head[sends]] * _BPS_PER_BYTE_PS
        none = np.full(len(sends), np.nan)
        return RateSample(*self._numbers.ends(sends), rate, none, np.zeros(len(sends)))

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        so_far = super().statistics()
        if self._topology.changes is not None:
            # What was sent before a flow was moved is taken off its new links in advance: see move_flow.
            so_far = replace(so_far, link_bytes=np.maximum(so_far.link_bytes, 0))
        if not (self._fluid.links["used"] > 0.0).any():
            return so_far
        # Of links that are busy now the time up to the grant counts; on a copy, for the run goes on.
        busy_ps = so_far.busy_ps.copy() if self._closed else so_far.busy_ps
        copy = self.core.copy({"pending": 0}, link_busy=busy_ps)
        kernel.settle_uses(copy, self._fluid, int(copy.state["grant"][0]))
        return replace(so_far, bin_ps=1 << int(copy.state["bin_bits"][0]), busy_ps=busy_ps)


class FairShare(NetworkSpec):
    """Flow-level max-min fair sharing with weights and strict priorities."""

    balancer: BalancerName = balancer_field()

    def shares_links(self) -> bool:
        """What flows share adds up to a link's rate at most."""
        return True

    def uses_seed(self) -> bool:
        """Where the balancer draws lots."""
        return self.balancer.uses_seed()

    def chooses_paths(self) -> bool:
        """Where the balancer does."""
        return self.balancer.chooses

    def check_topology(self, topology: Topology) -> None:
        """Refuse what leaves the balancer no choice. See :class:`NetworkSpec`."""
        check_balancer(self.balancer, topology)

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A fresh network.

        Raises
        ------
        InputError
            The balancer goes by queues, which this network does not have.
        """
        if self.balancer.needs_queues:
            raise InputError(
                f"network.balancer: {type(self.balancer).__name__} goes by queues and marks, which "
                "fair_share does not have; take model: congestion"
            )
        return FairShareNetwork(self.balancer)
