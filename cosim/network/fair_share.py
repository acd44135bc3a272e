"""``fair_share``: flows share links like fluids, max-min fair, with weights and strict priorities.

Life of a flow: it is handed over at its start. Flows of one (job, source, destination, channel) go in
order, one at a time: the next begins to transfer when the one before has *drained*, that is when
its last byte has left the source. While it transfers it has a rate on its whole path at once (cut-through),
the max-min fair one (see ``sharing``); it completes when it has drained, plus the latencies of its
path. A message of zero bytes takes the latency only; a mark (source = destination) takes no time.

RateSample change only when a flow begins or drains, once for each instant: when time leaves it; and only on
the links whose share moves. A drain comes at a whole picosecond, rounded up
(``drains.drain_time`` says how dust is told from volume). Where higher classes fill a link, lower ones
wait at rate zero.

At an instant, first what drains then, then what starts then. A drain depends on the past only, so it is
taken up to the limit of an advance; a start or a new rate only before it, because the caller may still
give starts there. Dependents are told at the drain, when the completion is certain.

Link statistics: busy time is the fraction of the rate in use; bytes count when a flow drains.
Not modelled: packets, queues, window or rate control and the time it takes to converge, loss; a path's
links give a flow its rate at the same instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from operator import is_
from typing import Any

import numpy as np

from cosim.context import Context
from cosim.errors import InputError, NetworkError
from cosim.network.balancing.contract import Balancer
from cosim.network.balancing.named import BalancerName, balancer_field, check_balancer
from cosim.network.balancing.session import Balancing
from cosim.network.changes import CHANGE, NEED_CHANGES, NEED_ROUTES, to_come
from cosim.network.channels import CHANNEL, ChannelNumbers
from cosim.network.compiled import FIRST_PATHS, CompiledNetwork, live
from cosim.network.contract import NetworkSpec
from cosim.network.dense import copied, no_rows, rates_now, rows_for
from cosim.network.dense_turns import NEED_COLUMNS
from cosim.network.drains import DRAIN
from cosim.network.fair_loop import NEED_FLOWS, run_fair, settle
from cosim.network.fair_routes import NEED_MEMBERS, choose, choose_anew, end_on_route
from cosim.network.flows import I32, FlowGroup
from cosim.network.fluid import (
    BPS_PER_BYTE_PS,
    CLASS,
    COUNTS,
    FLOW,
    LINK,
    MEMBER,
    MOMENT,
    NO_CLASS,
    NONE,
    USE,
    Fluid,
)
from cosim.network.growing import LEAST_ROWS, GrowingArrays, zeros
from cosim.network.rerouting import move_flows
from cosim.network.simulator import NetworkSimulator, NetworkStatistics, RateSample
from cosim.network.uses import put_uses
from cosim.topology.graph import Topology

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e3
_LISTED_USES = 1 << 14  # of links, of 32 bytes: of a run of some thousand flows all of them
_WEIGHT_UNIT = 10**9  # of a weight of 1; see MIN_WEIGHT: the least is 1,000


class FairShareNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "fair_share"
    symmetric = True
    link_changes = True
    has_rates = True

    def __init__(self, balancer: Balancer | None = None, *, in_python: bool = False) -> None:
        super().__init__()
        self._balancer = balancer
        self._in_python = in_python
        # A balancer draws lots, and spreads over so many paths only: places that look alike fare otherwise.
        self.symmetric = balancer is None or not balancer.chooses
        self.by_cause = balancer is not None

    def _open_model(self, topology: Topology, seed: int) -> None:
        self._balancing = Balancing(
            self._balancer, topology, seed, self._addresses, in_python=self._in_python
        )
        count = topology.num_links
        links = zeros((count,), LINK)
        links["capacity"] = topology.link_rate_bps / BPS_PER_BYTE_PS
        links["latency"] = topology.link_latency_ps
        links["first"] = NONE
        self._numbers = ChannelNumbers()
        self._view: Fluid | None = None
        self._view_of: tuple[object, ...] = ()
        self._traits: dict[tuple[int, int], int] = {}
        self._fluid = GrowingArrays(
            {
                "counts": np.zeros(1, COUNTS),
                "flows": np.zeros(0, FLOW),
                "members": np.zeros(0, MEMBER),
                "links": links,
                "drains": np.zeros(0, DRAIN),
                "ahead": np.zeros(count, MOMENT),
                "channels": np.zeros(FIRST_PATHS, CHANNEL),
                "classes": np.zeros(64, CLASS),
                "changes": np.zeros(0, CHANGE),
                "uses": np.empty(_LISTED_USES, USE),
                "path_now": np.arange(FIRST_PATHS),
                "channel_of": np.zeros(FIRST_PATHS, np.int32),
                "found": np.zeros(0, np.int32),
            }
        )
        self._dense = no_rows()
        events = len(self._arrays["calendar"].events)
        lists = dict.fromkeys(("dirty", "kept"), count)
        lists |= dict.fromkeys(("instant", "spare", "other"), events)
        self._fluid.update({name: np.zeros(room, np.int32) for name, room in lists.items()})
        self._fluid["channels"]["head"] = NONE
        counts = self._fluid["counts"]
        counts["free_flow"] = counts["free_member"] = NONE
        if topology.changes is not None:
            self._changes.fill(self._fluid)
        if self._balancing.balancer is not None:
            self._balancing.call(choose, end_on_route, self.signature())

    def _kernels(self) -> tuple[Callable[..., None] | None, ...]:
        return (type(self._balancer).kernel,) if self._balancer is not None else ()

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        numbers = self._numbers.number(job, src, dst, channel)
        fluid, rows = self._fluid, first + len(src)
        paths, channels = len(fluid["path_now"]), len(fluid["channels"])
        grown = fluid.reserve_all({"channel_of": rows, "path_now": rows, "channels": len(self._numbers)})
        if "channels" in grown:
            fluid["channels"]["head"][channels:] = NONE
        if "path_now" in grown:
            fluid["path_now"][paths:] = np.arange(paths, len(fluid["path_now"]))
        self._avoid_dead_links()
        fluid["channel_of"][first : first + len(src)] = numbers
        self._balancing.bind(len(self._numbers), numbers, job, src, dst, channel)

    def _reroute(self) -> None:
        """Find paths for the change of routes that was just taken, and move flows under way."""
        self._detours.dead = self._changes.dead(int(self._fluid["counts"]["change"][0]) - 1)
        before = self._fluid["path_now"]
        self._fluid["path_now"] = np.arange(self._ptr_used)
        self._avoid_dead_links()
        if self._balancing.balancer is not None:
            self._balancing.avoid(self._detours.dead)
            choose_anew(self.columns())
        # Room for every flow on the longest path there is: moving them is one go, which can't stop to grow.
        longest = int(np.diff(self._arrays["path_ptr"][: self._ptr_used]).max())
        self._fluid.reserve("members", longest * int(self._fluid["counts"]["flows_used"][0]))
        if self._balancing.balancer is None:
            move_flows(self.core(), self.columns(), before)
        if self._fluid["counts"]["change"][0] == len(self._fluid["changes"]):
            self._changes.fill(self._fluid)

    def _avoid_dead_links(self) -> None:
        if self._topology.changes is None:
            return
        rows, places = self._detours.places(
            self._arrays["path_ptr"], self._arrays["path_link"], self._append_paths
        )
        self._fluid["path_now"][rows] = places

    def traits(self, group: FlowGroup) -> int:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: weight and priority."""
        if not MIN_WEIGHT <= group.weight <= MAX_WEIGHT:
            raise NetworkError(f"fair_share: weight {group.weight} is not in [{MIN_WEIGHT}, {MAX_WEIGHT}]")
        if not 0 <= group.priority < NO_CLASS:
            raise NetworkError(
                f"fair_share: priority {group.priority} is not from 0, the class served first, "
                f"to {NO_CLASS - 1}"
            )
        # Whole numbers: sums of weights are exact, and the same in whatever order flows come and go.
        weight = round(group.weight * _WEIGHT_UNIT)
        number = self._traits.setdefault((weight, group.priority), len(self._traits))
        self._fluid.reserve("classes", number + 1)
        self._fluid["classes"][number] = weight, group.priority
        return number

    def _expect_model(self, rows: int) -> None:
        hops = self._link_used // max(self._ptr_used, 1) + 1  # of most paths
        # One more: the loop stops where there is no room for another one, whether or not there is one.
        self._make_room(rows + 1, min(hops * rows, self._link_used))

    def _make_room(self, rows: int, members: int = 0) -> None:
        needs = {"flows": rows, "drains": rows, "found": rows, "members": members}
        have = len(self._fluid["flows"])
        if rows > have:  # a moment for each link, and each flow
            needs["ahead"] = max(rows, 2 * have, LEAST_ROWS) + len(self._fluid["links"])
        self._fluid.reserve_all(needs)

    def _copy_model(self) -> dict[str, Any]:
        counts = self._fluid["counts"][0]
        used = {
            "counts": 1,
            "flows": int(counts["flows_used"]),
            "members": int(counts["members_used"]),
            "drains": int(counts["flows_used"]),
            "dirty": int(counts["num_dirty"]),
            "channels": len(self._numbers),
            "links": len(self._fluid["links"]),
        }
        copies = {name: live(self._fluid[name], n) for name, n in used.items()}
        copies["counts"]["num_uses"] = 0  # a copy counts nothing
        copies["uses"] = np.empty(_LISTED_USES, USE)
        return {
            "_balancing": self._balancing.copied(),
            "_dense": copied(self._dense),
            "_fluid": GrowingArrays(self._fluid | copies),
        }

    def _grow_model(self, what: int) -> None:
        if self._balancing.see_to(what):
            return
        if what == NEED_FLOWS:
            self._make_room(max(1024, 2 * len(self._fluid["flows"])))
        elif what == NEED_MEMBERS:
            self._fluid.reserve("members", max(1024, 2 * len(self._fluid["members"])))
        elif what == NEED_COLUMNS:
            sizes = (len(self._fluid[name]) for name in ("flows", "links", "members"))
            self._dense = rows_for(*sizes)
        elif what == NEED_CHANGES:
            self._changes.fill(self._fluid)
        elif what == NEED_ROUTES:
            self._reroute()
        else:
            for name in ("instant", "spare", "other"):
                self._fluid.reserve(name, len(self._arrays["calendar"].events))

    @property
    def loop(self) -> Any:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return run_fair

    def columns(self) -> Fluid:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        seen = self._fluid, self._fluid.stamp, self._balancing.view(), self._dense
        if self._view is None or not all(map(is_, seen, self._view_of)):
            _, _, balance, dense = self._view_of = seen
            self._view = Fluid.of(self._view, balance=balance, dense=dense, **self._fluid)
        return self._view

    def _next_instant(self) -> int:
        # A grant is closed for completions, so it has to end before a drain that was not taken yet.
        start, count = super()._next_instant(), int(self._fluid["counts"]["num_drains"][0])
        return min(start, int(self._fluid["drains"][0]["time"]) - 1) if count else start

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        counts = self._fluid["counts"][0]
        changes = counts["num_members"] > 0 and to_come(counts)
        return super().has_work() or changes or any(counts[name] for name in ("num_drains", "num_dirty"))

    def rates(self) -> RateSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        head = self._fluid["channels"]["head"][: len(self._numbers)]
        sends = np.flatnonzero(head != NONE)
        rate = rates_now(self._fluid, self._dense, head[sends]) * BPS_PER_BYTE_PS
        none = np.full(len(sends), np.nan)
        return RateSample(*self._numbers.ends(sends), rate, none, np.zeros(len(sends)))

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        goes_on = put_uses(self.core(), self.columns())
        so_far = super().statistics()
        if self._balancing.balancer is not None:
            so_far = replace(so_far, balancing=self._balancing.used())
        if self._topology.changes is not None:
            # What was sent before a flow was moved is taken off its new links in advance: see move_flows.
            so_far = replace(so_far, link_bytes=np.maximum(so_far.link_bytes, 0))
        if not goes_on:
            return so_far
        # Of links that are busy now the time up to the grant counts; on a copy, for the run goes on.
        busy_ps = so_far.busy_ps.copy() if self._closed else so_far.busy_ps
        copy = self.core().replaced(state=self._arrays["state"].copy(), link_busy=busy_ps)
        settle(copy, self._fluid["links"], int(copy.state["grant"][0]))
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
