"""``congestion``: flows under congestion control, as fluids at round-trip granularity.

A *connection* carries the flows of one (job, source, destination, channel), one at a time, and lives on
between them with its control's state. In each *round* (a round trip, queues included, rounded up to an
eighth of the bare one or less) it sends at one rate; when the round ends, its control is shown what the
round before it met and says what it may send in the next (``control``). A window w is the rate w / rtt; one
that nothing paces leaves in a burst where no queue spreads it, and then waits for the round to end.

A flow brings its rate to every port of its path (``apply``: what a port can't serve is not passed on),
queues are straight lines between changes (``ports``), marks and losses are integrated along them. A flow
completes when its last byte has left, plus latencies, the queues of its path at that time, and a packet's
time on each further link; where ports pause, or it goes by several paths, its last bytes stand in those
queues (``last_bytes``). The first packet of a round that is lost is known of a round trip after it was sent,
and the round ends then; lost packets are sent again from there on, and where some of those are lost again
the sender is silent until its timeout. TCP's acknowledgements wait in the queues of data that goes the other
way.

A connection whose control has settled, on a path where nothing queues, rests: its rounds are left out until
a link there begins to queue, which changes no result: what it has sent follows from the time since it has
its rate, not from a sum over rounds. So does one that begins again after such a rest, with a window that
can't limit it; one that falls idle and has nothing left to tell its control ends its round there. Where
growth is scaled by what all of a coflow have sent (MLTCP), none rests: others would hear of it late.

A connection's bytes go by one *subflow* (path), or by several with a part each, as a load balancer says
(``choosing``), under one control: round trip, marks, losses and telemetry that it is shown are means over
its subflows by their parts, as they are when a round ends. All subflows send at one rate; the least share
that a port of its host has for it holds. Where a connection takes other subflows, those that it leaves
keep what was sent by them; what is lost up to then counts as if it had stayed. A message is there when the
last of its subflows has brought its part.

Over a dead link nothing goes, and a connection that has to take one is silent: its rounds end there, its
control is told nothing and keeps what it has, and a new round begins when the link is back, or, a detection
later, by another path. What has left its sender arrives, also from the queue of a link that died.

Each packet has headers, telemetry where its control has some, and an Ethernet frame: links carry those bytes,
too, and queues hold them. What is reported of links is on the wire, what is reported of flows are their own
bytes.

RateSample are whole bits per second, so that sums are exact in any order; timestamps need + - * / only.

Default settings of ports (marking, lossless or not) are those of the control's paper; the scenario may say
others. Flows of priority 0 are served first, in queues of their own; up to eight classes.

Not modelled: single packets, bursts within a round trip but for the first window,
acknowledgements' own bandwidth and how queues bunch them, reordering, which packets a full queue drops,
buffers shared between the ports of a switch; what is lost on a link that dies, timeouts over it, and the time
of a packet at another rate than the one that a link was built with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.fabric.detours import ChangeList, ChangeTable
from cosim.kernel import kernel
from cosim.kernel.columns import longer
from cosim.network.balancing.contract import Balancer
from cosim.network.chance import salts
from cosim.network.compiled import CompiledNetwork
from cosim.network.congestion.contract import Control
from cosim.network.congestion.control import ask_in_python, check_answers
from cosim.network.congestion.credits import Loops
from cosim.network.congestion.fabric import (
    PortSettings,
    circle,
    make_lines,
    make_links,
    make_passing,
    make_ports,
    make_settings,
    other_way,
    packet_bytes,
    percentile,
)
from cosim.network.congestion.state import MAX_STATE, NUM_CLASSES, QUEUE_BINS, CongestionState
from cosim.network.congestion.subflow_rows import SubflowRows
from cosim.network.congestion.tuning import tuned
from cosim.network.congestion.watching import LinkWatch
from cosim.network.core import ChannelNumbers, DrainHeap, events_of
from cosim.network.flows import F64, I32, I64, FlowGroup
from cosim.network.plugged import address_of_kernel
from cosim.network.simulator import NetworkStatistics, QueueSample, RateSample
from cosim.registry import name_of
from cosim.topology.graph import Topology
from cosim.units import NEVER, format_rate, format_time

_NONE = -1


class CongestionNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "congestion"
    peeks = False
    link_changes = live_changes = live_control = True
    has_queues = True
    has_rates = True
    loop = "run_congestion"

    def __init__(
        self, control: Control, ports: PortSettings | None = None, balancer: Balancer | None = None
    ) -> None:
        super().__init__(balancer)
        self._scaling = control.scaling()
        self._control = control.inner()
        self._ports = ports or PortSettings()
        _, self._wire_bytes = packet_bytes(self._control, self._ports)
        """Bytes of a full packet on the wire."""
        given = self._ports.credits
        self._loops = None if given is None else Loops(given, self._wire_bytes)

    def _open_model(self, topology: Topology, seed: int) -> None:
        self._seed = seed
        self._choices_used = 0
        self._own = self._now = np.zeros(0, np.int32)
        self._detour_subflows: dict[tuple[int, int], int] = {}
        if self._loops is not None:
            topology = replace(topology, link_rate_bps=self._loops.goodput_bps(topology.link_rate_bps))
            if topology.changes is not None:
                self._changes = ChangeTable(self._loops.changed(topology.changes))
        self._check_rates(topology)
        self._rate = topology.link_rate_bps
        self._numbers = ChannelNumbers()
        self._watch: LinkWatch | None = None
        self._coflows: dict[int, int] = {}
        self._traits: dict[tuple[float, int, int, int], int] = {}
        self._conns_used = 0
        self._ends = np.zeros((0, 4), np.int64)
        self._fluid = fluid = self._make_state(topology)
        back = np.full(topology.num_links, _NONE, np.int64)
        if self._control.acks_wait:
            back = other_way(topology.link_src, topology.link_dst)
        self._rows = SubflowRows(fluid, topology, self._wire_bytes, back)
        self._changes.fill(fluid.changes)

    def _make_state(self, topology: Topology) -> CongestionState:
        """The state of a network on which nothing has been sent."""
        links, control = topology.num_links, self._control
        fluid = CongestionState(
            drains=DrainHeap(),
            changes=ChangeList(),
            settings=make_settings(control, self._scaling, self._ports),
            links=make_links(control, self._ports, topology),
            ports=make_ports(links),
            passing=make_passing(topology, balanced=self._balancing is not None),
            parameters=np.array(control.parameters(), np.float64),
            histogram=np.zeros((links, QUEUE_BINS), np.float64),
        )
        counts, settings = fluid.counts[0], fluid.settings[0]
        counts["num_links"], counts["num_classes"], counts["stamp"] = links, 1, 1
        for name in ("free_flow", "free_boundary", "free_input", "free_last"):
            counts[name] = _NONE
        counts["kernel"] = address_of_kernel(type(control))
        settings["balanced"] = balanced = self._balancing is not None
        settings["changing"] = changing = topology.changes is not None
        if self._balancing is not None:
            fluid.put(balance=self._balancing.columns, mine=np.zeros(links, np.int64))
        if changing or balanced or settings["lossless"]:
            settings["traced"] = 1
            fluid.put(lines=make_lines(links))
        return fluid

    def _check_rates(self, topology: Topology) -> None:
        """Refuse links on which a packet takes less than the clock's tick, or longer than 1000 seconds."""
        packet = self._wire_bytes * 8e12 / topology.link_rate_bps
        for link in np.flatnonzero((packet < 1) | (packet > 1e15))[:1].tolist():
            low, high = (format_rate(self._wire_bytes * 8e12 / one) for one in (1e15, 1))
            raise NetworkError(
                f"congestion: the link {topology.link_name(link)} has "
                f"{format_rate(topology.link_rate_bps[link])}; with packets of {self._wire_bytes} bytes "
                f"rates from {low} to {high} are modelled"
            )

    def _check_round_trips(self, conns: NDArray[Any], ends: NDArray[Any], control: Control) -> None:
        """Refuse paths that the control would take for a queue."""
        hops, number = np.unique(conns["hops"], return_inverse=True)
        longest = np.array([control.longest_rtt_ps(one) for one in hops.tolist()])
        for conn in np.flatnonzero(conns["base"] > longest[number])[:1].tolist():
            names, (_, src, dst, _) = self._topology.node_names, ends[conn].tolist()
            kind = type(control)
            name = name_of("cosim.controls", kind) or kind.__name__
            most, bare = (format_time(round(ps)) for ps in (longest[number[conn]], conns["base"][conn]))
            raise NetworkError(
                f"congestion: {name} aims at a round trip of {most} at most, but from {names[src]} to "
                f"{names[dst]} it takes {bare} without any queue, so that it would send its least for ever; "
                "raise its target, or take a smaller mtu"
            )

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        numbers = self._numbers.number(job, src, dst, channel)
        end = first + len(src)
        self._fluid.lengthen("channel_of", end)[first:end] = numbers
        old = self._conns_used
        if len(self._numbers) > old:
            self._conns_used = len(self._numbers)
            self._add_conns(
                first, numbers, old, np.stack([np.full(len(src), job), src, dst, channel], axis=1)
            )
            if self._balancing is not None:
                self._balancing.bind(len(self._numbers), numbers, job, src, dst, channel)
                self._number_choices(old, self._balancing.num_paths(old))
        if self._paths.dead and self._balancing is None:
            self._follow_routes()

    def _add_conns(self, first: int, numbers: I32, old: int, ends: NDArray[Any]) -> None:
        count = len(self._numbers)
        fluid = self._fluid
        new, row = np.unique(numbers, return_index=True)
        row = row[new >= old]
        fluid.lengthen("state", MAX_STATE * count)
        fluid.lengthen("inside", count)
        fluid.lengthen("stamps", count)
        mine = fluid.lengthen("conns", count)[old:count]
        mine["flow"] = mine["tail"] = mine["rtt_at"] = mine["due"] = mine["coflow"] = _NONE
        mine["budget"] = 1e30
        place = first + row
        own = self._add_subflows(np.arange(old, count), place)
        self._own = np.concatenate([self._own, own])
        self._now = np.concatenate([self._now, own])
        fluid.subflows["part"][own] = fluid.subflows["listed"][own] = 1
        subflows = fluid.subflows[own]
        mine["subflow"], mine["hops"], mine["base"] = own, subflows["hops"], subflows["base"]
        self._check_round_trips(mine, ends[row], self._control)
        has = subflows["hops"] > 0
        leads = fluid.hops["link"][subflows["hop"][has]]
        mine["line"][has] = np.floor(self._rate[leads])
        grid = np.maximum(mine["base"] / 8, 1.0).astype(np.int64)
        mine["grid"] = [1 << (int(one).bit_length() - 1) for one in grid.tolist()]
        self._ends = longer(self._ends, count)
        self._ends[old:count] = ends[row]
        mine["salt"] = salts(self._seed, ends[row])

    def _add_subflows(self, conn: I64, place: I64) -> I32:
        """The numbers of new subflows, of connections and with the links that are at ``path_ptr[place]``."""
        ptr, links = self.core.path_ptr, self.core.path_link
        return self._rows.add(conn, ptr[place], ptr[place + 1] - ptr[place], links)

    def _number_choices(self, old: int, room: I64) -> None:
        """Have a place for a subflow by each path that new connections, from ``old`` on, may choose."""
        self._fluid.conns["choices"][old : self._conns_used] = self._choices_used + np.cumsum(room) - room
        first, self._choices_used = self._choices_used, self._choices_used + int(room.sum())
        self._fluid.lengthen("choices", self._choices_used)[first:] = _NONE

    def _add_chosen(self) -> None:
        """Make the subflows that a batch has chosen and that there are none of yet."""
        assert self._balancing is not None
        conn, path = self._balancing.chosen()
        choices = self._fluid.choices
        at = self._fluid.conns["choices"][conn] + path
        new = choices[at] == _NONE
        begin, hops, links = self._balancing.paths(conn[new], path[new])
        choices[at[new]] = self._rows.add(conn[new], begin, hops, links)

    def _reroute(self, so_far: I64) -> None:
        del so_far
        if self._balancing is None:
            self._follow_routes()
        else:
            kernel.choose_all_anew(self._fluid, self._conns_used)

    def _follow_routes(self) -> None:
        """Have connections go where routes go now."""
        goal, core = self._own.copy(), self.core
        rows = self._paths.moved()
        conn, row = np.unique(self._fluid.channel_of[rows], return_index=True)
        for one, place in zip(conn.tolist(), core.path_now[rows[row]].tolist(), strict=True):
            key = one, place
            if key not in self._detour_subflows:
                (found,) = self._add_subflows(np.array([one]), np.array([place]))
                self._detour_subflows[key] = int(found)
            goal[one] = self._detour_subflows[key]
        moved = np.flatnonzero(goal != self._now).astype(np.int32)
        self._now = goal
        kernel.reroute(core, self._fluid, len(moved), moved, goal[moved])

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        super().change(changes if self._loops is None else list(self._loops.changed(changes)))

    def traits(self, group: FlowGroup) -> int:
        """See :class:`~cosim.network.compiled.CompiledNetwork`: weight, priority, job and coflow."""
        if not 0 <= group.priority < NUM_CLASSES:
            raise NetworkError(
                f"congestion: priority {group.priority} is not one of the {NUM_CLASSES} classes 0 to 7"
            )
        coflow = _NONE
        if group.coflow_bytes > 0:
            coflow = self._coflows.setdefault(group.coflow, len(self._coflows))
            self._fluid.lengthen("coflows", coflow + 1)["size"][coflow] = group.coflow_bytes
        self._add_classes(group.priority)
        key = group.weight, group.priority, group.job, coflow
        number = self._traits.setdefault(key, len(self._traits))
        one = self._fluid.lengthen("traits", number + 1)[number]
        one["weight"], one["priority"], one["job"], one["coflow"] = key
        return number

    def _add_classes(self, priority: int) -> None:
        """Have ports for a class of priority, and those before it."""
        fluid, num_links = self._fluid, self._topology.num_links
        counts = fluid.counts[0]
        while counts["num_classes"] <= priority:
            counts["num_classes"] += 1
            fluid.put(ports=make_ports(num_links, fluid.ports))
            if len(fluid.lines):
                fluid.put(lines=np.concatenate([fluid.lines, make_lines(num_links)]))

    def tune(self, values: Mapping[str, Any], now_ps: int) -> None:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        self._control = tuned(self._control, values, self._ports, self._topology)
        fluid = self._fluid
        fluid.parameters[:] = self._control.parameters()
        # A link that changes, if only to the rate that it has, wakes all whose updates are left out there.
        rates = self._changes.rates_at(self._at_hand, now_ps, fluid.links["capacity"])
        super().change([LinkChange(now_ps, link, rate) for link, rate in enumerate(rates.tolist())])

    def parameters_with(self, values: Mapping[str, Any]) -> F64:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        control = tuned(self._control, values, self._ports, self._topology)
        self._check_round_trips(self._fluid.conns[: self._conns_used], self._ends, control)
        return np.array(control.parameters(), np.float64)

    @property
    def columns(self) -> CongestionState:
        """See :class:`~cosim.network.compiled.CompiledNetwork`."""
        return self._fluid

    def _answer_model(self, what: int) -> None:
        if what == kernel.ASK_CONTROL:
            ask_in_python(self._control, self._fluid)
            check_answers(self._control, self._fluid, self._describe)
        elif what == kernel.WRONG_ANSWER:
            check_answers(self._control, self._fluid, self._describe)  # raises
        elif what == kernel.NEED_SUBFLOWS:
            self._add_chosen()
        elif what == kernel.DEADLOCK:
            raise NetworkError(self._circle())
        else:
            super()._answer_model(what)

    def _circle(self) -> str:
        """The ports of a deadlock, as an error says it."""
        fluid, now = self._fluid, int(self.core.state["instant"][0])
        found = circle(fluid.ports, fluid.inputs, int(fluid.counts["stuck"][0]) - 1)
        links = fluid.ports["link"][found].tolist()
        shown = ", ".join(self._topology.link_name(one) for one in links)
        if self._loops is not None:
            return (
                f"congestion: deadlock of credits at {now} ps: {shown} wait for each other's room in a "
                "circle; take a routing without circles, or a larger flow_control.buffer"
            )
        return (
            f"congestion: PFC deadlock at {now} ps: {shown} pause each other in a circle; "
            "take a routing without circles, a larger pfc_threshold, or pfc: false"
        )

    def _describe(self, conn: int) -> str:
        job, src, dst, _ = self._ends[conn].tolist()
        names = self._topology.node_names
        return f"the connection of job {job} from {names[src]} to {names[dst]}"

    def _emptied_ps(self) -> int:
        """When all queues are empty, where nothing sends any more. A grant may end long after it, and links
        that were counted up to there would have bins of centuries.
        """
        ports, links = self._fluid.ports, self._fluid.links
        if ports["load"].any():
            return NEVER
        waiting = ports["queue"].reshape(-1, len(links)).sum(axis=0)
        last_ps = links["touched"] + waiting * 8e12 / np.maximum(links["capacity"], 1)
        return int(np.ceil(last_ps.max()))

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`; ``extra`` has what ns-3 reports, and
        pauses.

        ``drops`` (where switches trim, ``trims``) and ``marks`` count packets; queue percentiles are of what
        bytes met, within 3 %. All classes of a link together.
        """
        found = super().statistics()
        busy_ps = found.busy_ps.copy() if self._closed else found.busy_ps
        core, fluid = self.core.copy({"pending": 0}, link_busy=busy_ps), self._fluid
        histogram, now = fluid.histogram.copy(), min(int(core.state["grant"][0]), self._emptied_ps())
        fluid = fluid.queues_of(fluid.links, fluid.ports, histogram)
        kernel.settle_all_queues(core, fluid, now)
        ports = fluid.ports.reshape(-1, len(fluid.links))
        histogram[:, 0] = np.maximum(ports["served"].sum(axis=0) - histogram.sum(axis=1), 0.0)
        paused = ports["paused_ps"] + np.where(ports["paused"] > 0, now - ports["since"], 0)
        packet, peak = self._wire_bytes, ports["peak"].max(axis=0)
        dropped = ports["dropped"].sum(axis=0) / packet
        nothing = np.zeros(len(fluid.links))
        extra: Mapping[str, F64] = {
            **({"drops": nothing, "trims": dropped} if fluid.settings["trims"][0] else {"drops": dropped}),
            "marks": ports["marked"].sum(axis=0) / packet,
            "queue_p50_bytes": np.minimum(percentile(histogram, 0.5), peak),
            "queue_p99_bytes": np.minimum(percentile(histogram, 0.99), peak),
            "queue_max_bytes": peak,
            "pause_ps": paused.sum(axis=0).astype(np.float64),
        }
        return replace(found, bin_ps=1 << int(core.state["bin_bits"][0]), busy_ps=busy_ps, extra=extra)

    def has_work(self) -> bool:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        fluid, core = self._fluid, self.core
        changes = fluid.counts["num_active"][0] > 0 and fluid.changes.to_come()
        if changes or fluid.drains.count or fluid.counts["open"][0] or core.state["num_pending"][0]:
            return True
        return not all(self._is_in_vain(*one) for one in events_of(core.calendar))

    def _is_in_vain(self, time_ps: int, event: Any) -> bool:
        """Whether an event is a look at a queue that could have crossed a threshold, had more come to it."""
        if event["hop"] != kernel.MAY_CROSS:  # of other kinds of events the row is a connection's
            return False
        port = self._fluid.ports[event["row"]]
        nothing = port["load"] == 0 and port["head"] == -1 and not port["stops"]
        return bool(port["check"] != time_ps or nothing)

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        fluid, watch = self._fluid, self._watch
        if watch is None or not np.array_equal(watch.links, links) or watch.num_ports != len(fluid.ports):
            self._watch = watch = LinkWatch(self.core, fluid, links)
        return watch.queues(fluid, now_ps, self._wire_bytes)

    def rates(self) -> RateSample:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        used = self._fluid.conns[: self._conns_used]
        sends = np.flatnonzero(used["active"])
        job, src, dst, _ = self._ends[sends].astype(np.int32).T
        conns = used[sends]
        window = conns["window"] if self._control.gives == "window" else np.full(len(sends), np.nan)
        return RateSample(
            job, src, dst, conns["rate"].astype(np.float64), window.copy(), conns["marked"].copy()
        )

    @property
    def num_connections(self) -> int:
        """How many connections there are."""
        return self._conns_used

    @property
    def control_updates(self) -> int:
        """How often a control was asked about a connection."""
        return int(self._fluid.counts["num_updates"][0])
