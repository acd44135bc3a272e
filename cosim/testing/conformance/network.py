"""Checking a network of this process: the object itself, called as the engine calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cosim.context import HERE
from cosim.network.contract import NetworkSpec
from cosim.network.flows import I64, Completions, FlowBatch, FlowGroup, FlowTable
from cosim.network.simulator import Capabilities, NetworkSimulator, NetworkStatistics, QueueSample, RateSample
from cosim.protocol.digest import Digest
from cosim.protocol.flat_flows import LATER, FlatFlows
from cosim.testing.conformance.cases import star
from cosim.testing.conformance.kit import Answer, Kit, Probe, Starts, run_checks
from cosim.testing.conformance.report import ConformanceError, Report, Result
from cosim.topology.graph import Topology
from cosim.units import NEVER

UNKNOWN = 1 << 40
"""The id of a completion of a flow that was never given."""


def check_network(
    network: NetworkSpec | Callable[[], NetworkSimulator],
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    topology: Topology | None = None,
    told: Callable[[Result], None] | None = None,
) -> Report:
    """Check a network against every rule of the seam; a test of your own network is this one line.

    Parameters
    ----------
    network
        What a scenario names, with its settings: ``MyNetwork(time="10us")``. Or anything that makes a
        network: a class does, where it takes no arguments. Each check opens networks of its own.
    only, skip
        Names of checks to run (all, where empty), and not to run: of what the model leaves out on purpose.
    topology
        8 endpoints, each pair two links of 10 Gb/s and 1 us apart; None: :func:`cosim.testing.star`. For a
        network that needs scale-up domains: :func:`cosim.testing.two_hosts`.
    told
        Called after each check.

    Returns
    -------
    The report, in which no check failed.

    Raises
    ------
    ConformanceError
        Names each rule that is broken, and what was seen. Its ``report`` has every check.
    ValueError
        There is no check of such a name.

    Examples
    --------
    >>> from cosim.network.fair_share import FairShareNetwork
    >>> report = check_network(FairShareNetwork, only=["latency", "line_rate", "marks"])
    >>> report.passed
    True

    A model without congestion doesn't let messages share a link:

    >>> from cosim.network.unaware import CongestionUnawareNetwork
    >>> check_network(CongestionUnawareNetwork, only=["shares"])
    Traceback (most recent call last):
    ...
    cosim.testing.conformance.report.ConformanceError: congestion_unaware breaks 1 of 1 rules
      shares (three messages on one link take as long as their bytes together): 24000000 bytes crossed one \
link in 6402000000 ps; line rate needs 19200000000 ps
    """
    make = partial(network.build, HERE) if isinstance(network, NetworkSpec) else network
    report = run_checks(NetworkKit(make, topology or star()), "network", only=only, skip=skip, told=told)
    if not report.passed:
        raise ConformanceError(report)
    return report


class NetworkKit(Kit["NetworkProbe"]):
    """A network of this process under test."""

    def __init__(self, make: Callable[[], NetworkSimulator], topology: Topology) -> None:
        self.make = make
        self.topology = topology
        self.capabilities = make().describe()

    def has(self, feature: str) -> bool:
        """See :meth:`Kit.has`. What releases flows does so for starts too."""
        there = self.capabilities
        return {
            "dependent_flows": there.dependent_flows,
            "start_dependencies": there.dependent_flows,
            "peek": there.peek,
            "symmetric": there.symmetric,
            "link_changes": there.link_changes,
            "live_changes": there.live_changes,
            "queues": there.queues,
            "rates": there.rates,
            "switch_ends": there.switch_ends,
            "computations": there.computations,
        }.get(feature, False)

    def new_probe(self) -> NetworkProbe:
        """See :meth:`Kit.new_probe`."""
        return NetworkProbe(self.make(), self.topology, self.capabilities)


class NetworkProbe(Probe):
    """A session of a network: flat flows become groups; ids become handles and indices, and back."""

    def __init__(self, network: NetworkSimulator, topology: Topology, there: Capabilities) -> None:
        super().__init__()
        self.network = network
        self._topology = topology
        self._releases = there.dependent_flows
        self._groups: list[FlatFlows] = []
        self._digest = Digest()

    def open(self) -> None:
        """See :meth:`Probe.open`."""
        self.network.open(self._topology, 1)

    def advance(
        self, flows: FlatFlows | None = None, horizon_ps: int = NEVER, *, starts: Starts | None = None
    ) -> Answer:
        """See :meth:`Probe.advance`."""
        new = len(self._groups)
        started = [] if starts is None else [starts]
        if flows is not None:
            self._groups += [flows.part(low, high) for low, high in flows.runs()]
            self.next_id = flows.first_id + flows.count
            given = np.flatnonzero(flows.column("start_ps") != LATER)
            start, cause = flows.column("start_ps")[given], flows.column("cause_ps")[given]
            started.append((flows.first_id + given, start, np.where(cause == LATER, start, cause)))
        groups = [self._group(handle) for handle in range(new, len(self._groups))]
        ids, start, cause = (
            np.concatenate([np.empty(0, np.int64), *(part[c] for part in started)]) for c in range(3)
        )
        handle = np.searchsorted(self._first(), ids, side="right") - 1
        index = ids - self._first()[handle] if len(ids) else ids
        batch = FlowBatch(groups, handle.astype(np.int32), index, start, cause)
        granted, done = self.network.advance(batch, horizon_ps)
        return self._answered(granted, done)

    def _first(self) -> I64:
        """The first id of each group, by handle."""
        return np.array([group.first_id for group in self._groups], np.int64)

    def _group(self, handle: int) -> FlowGroup:
        flows = self._groups[handle]
        own = flows.first_id + np.repeat(np.arange(flows.count), np.diff(flows.pointers))
        table = FlowTable(
            num_participants=self._topology.num_endpoints,
            src=flows.column("src"),
            dst=flows.column("dst"),
            size_bytes=flows.column("size_bytes"),
            channel=flows.column("channel"),
            delay_ps=flows.column("delay_ps"),
            reaction_ps=flows.column("reaction_delay_ps"),
            dep_ptr=flows.pointers,
            dep_distance=own - flows.dependency_id,
            dep_kind=flows.dependency_kind,
            block_row=np.array([0, flows.count], np.int64),
            block_repeat=np.array([1], np.int64),
        )
        key = int(flows.columns["key_high"][0]), int(flows.columns["key_low"][0])
        return FlowGroup(
            handle,
            table,
            np.arange(self._topology.num_endpoints, dtype=np.int32),
            key,
            release="network" if self._releases else "caller",
        )

    def _answered(self, granted: int, done: Completions) -> Answer:
        first = np.append(self._first(), UNKNOWN)
        count = np.array([*(group.count for group in self._groups), 0], np.int64)
        handle = np.where((done.handle >= 0) & (done.handle < len(self._groups)), done.handle, -1)
        known = (done.index >= 0) & (done.index < count[handle])
        ids = np.where(known, first[handle] + done.index, UNKNOWN)
        self._digest.add(np.zeros(known.sum(), np.int64), ids[known], done.time_ps[known])
        answer = Answer(granted, ids, done.start_ps, done.time_ps, (self._digest.a, self._digest.b))
        self.answers.append(answer)
        return answer

    def peek(self) -> int | None:
        """See :meth:`Probe.peek`."""
        return self.network.peek()

    def statistics(self) -> NetworkStatistics:
        """See :meth:`Probe.statistics`."""
        return self.network.statistics()

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """See :meth:`Probe.queues`."""
        return self.network.queues(links, now_ps)

    def rates(self) -> RateSample:
        """See :meth:`Probe.rates`."""
        return self.network.rates()

    def has_work(self) -> bool:
        """See :meth:`Probe.has_work`."""
        return self.network.has_work()

    def close(self) -> None:
        """See :meth:`Probe.close`."""
        self.network.close()

    def break_off(self) -> None:
        """See :meth:`Probe.break_off`: whatever it held goes with it."""
        self.network.close()
