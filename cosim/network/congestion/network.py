"""``congestion``: flows under congestion control, as fluids at round-trip granularity.

A *connection* carries the flows of one (job, source, destination, channel), one at a time, and lives on
between them with its control's state. In each *round* (a round trip, queues included, rounded up to an eighth
of the bare one or less) it sends at one rate; when the round ends, its control is shown what the round before
it met and says what it may send in the next (``control``). A window w is the rate w / rtt; one that nothing
paces leaves in a burst where no queue spreads it, and then waits for the round to end.

A flow brings its rate to every port of its path (``apply``: what a port can't serve is not passed on), queues
are straight lines between changes (``ports``), marks and losses are integrated along them. A flow completes
when its last byte has left, plus latencies, the queues of its path at that time, and a packet's time on each
further link. Lost packets are sent again from the round's end on.

A connection whose control has settled, on a path where nothing queues, rests: its rounds are left out until a
link there begins to queue, which changes no result. Nothing costs anything while nothing happens.

Rates are whole bits per second, so that sums are exact in any order; timestamps need + - * / only.

Default settings of ports (marking, lossless or not) are those of the control's paper; the scenario may say
others. Flows of priority 0 are served first, in queues of their own; up to eight classes.

Not modelled: packets and their headers, bursts within a round trip but for the first window,
acknowledgements' own bandwidth, retransmission timeouts and reordering, buffers shared between the ports of a
switch; load that ends at an upstream port ends downstream at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.network.channels import ChannelNumbers
from cosim.network.compiled import CompiledNetwork
from cosim.network.congestion import columns
from cosim.network.congestion.columns import (
    CLASSES,
    COFLOW,
    CONN,
    DRAIN_N,
    FLOW,
    FLOW_FREE,
    GROUP_TRAITS,
    HOP,
    LINK,
    MAX_STATE,
    NUM_CLASSES,
    PAIR,
    PORT,
    QUEUE_BINS,
    ROW,
    STAMP,
    STUCK,
    TELEMETRY,
    UPDATES_N,
    WAITING_N,
    Fluid,
)
from cosim.network.congestion.control import Control, ask_in_python, check_answers, state_width
from cosim.network.congestion.loop import ASK, DEADLOCK, NEED_FLOWS, NEED_ROWS, run_congestion
from cosim.network.congestion.ports import settle_link
from cosim.network.core import BIN_PS, GRANT, INSTANT, Core
from cosim.network.drains import DRAIN
from cosim.network.flows import F64, I32, FlowGroup
from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Topology

_NONE = -1


@dataclass(frozen=True)
class Ports:
    """What a scenario says of ports; None: as the control has it."""

    mtu_bytes: int = 9000
    buffer_bytes: int | None = None
    mark_from_bytes: int | None = None
    mark_all_bytes: int | None = None
    mark_probability: float | None = None
    lossless: bool | None = None
    pause_bytes: int | None = None
    rest: bool = True


class CongestionNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "congestion"
    peeks = False

    def __init__(self, control: Control, ports: Ports | None = None, *, in_python: bool = False) -> None:
        super().__init__()
        self._scaling = control.scaling()
        self._control = control = control.inner()
        self._ports = ports or Ports()
        self._in_python = in_python or control.kernel is None

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        count = topology.num_links
        self._rate = topology.link_rate_bps
        self._latency = topology.link_latency_ps
        self._numbers = ChannelNumbers()
        self._hops_used = 0
        self._max_hops = 1
        self._coflows: dict[int, int] = {}
        self._conns_used = 0
        ports = np.zeros(count * NUM_CLASSES, PORT)
        ports["first"] = ports["blocks"] = _NONE
        ports["share"] = ports["duty"] = 1.0
        self._fluid: dict[str, NDArray[Any]] = {
            "conns": np.zeros(0, CONN),
            "ends": np.zeros((0, 3), np.int64),
            "hops": np.zeros(0, HOP),
            "ports": ports,
            "links": self._make_links(count),
            "flows": np.zeros(0, FLOW),
            "drains": np.zeros(0, DRAIN),
            "traits": np.zeros(64, GROUP_TRAITS),
            "coflows": np.zeros(64, COFLOW),
            "pairs": np.zeros(0, PAIR),
            "rows": np.zeros(0, ROW),
            "telemetry": np.zeros((0, 1), TELEMETRY),
            "before": np.zeros((0, MAX_STATE + 2), np.float64),
            "state": np.zeros((0, MAX_STATE), np.float64),
            "settings": self._make_settings(),
            "histogram": np.zeros((count, QUEUE_BINS), np.float64),
            "channel_of": np.zeros(64, np.int32),
            "changed": np.zeros(0, np.int32),
            "updated": np.zeros(0, np.int32),
            "hosts": np.zeros(count * NUM_CLASSES, np.int32),
            "scan": np.zeros(count * NUM_CLASSES, np.int32),
            "touched": np.zeros(count * NUM_CLASSES, np.int32),
        }
        for name in ("instant", "spare", "other", "third"):
            self._fluid[name] = np.zeros(0, np.int32)
        meta = self._arrays["meta"]
        meta[FLOW_FREE] = _NONE
        meta[STAMP] = 1
        meta[CLASSES] = 1
        self._parameters = np.array(self._control.parameters(), np.float64)
        self._driver = type(self._control).driver
        if not self._in_python and self._driver is None:
            self._driver = _compile_driver(self._control)

    def _make_settings(self) -> F64:
        control, ports = self._control, self._ports
        found = np.zeros(10)
        found[columns.MSS] = ports.mtu_bytes
        found[columns.GIVES_RATE] = control.gives == "rate"
        found[columns.PACED] = control.paced
        found[columns.LOSSLESS] = self._is_lossless()
        found[columns.SLOPE], found[columns.INTERCEPT] = self._scaling
        found[columns.SETTLES] = control.settles and ports.rest and not control.telemetry
        found[columns.WANTS_TELEMETRY] = control.telemetry
        found[columns.STATES] = state_width(control)
        found[columns.SCALED] = self._scaling != (0.0, 1.0) and not control.scales_itself
        return found

    def _is_lossless(self) -> bool:
        return self._control.lossless if self._ports.lossless is None else self._ports.lossless

    def _make_links(self, count: int) -> NDArray[Any]:
        ports = self._ports
        links = np.zeros(count, LINK)
        links["capacity"] = np.floor(self._rate)
        links["latency"] = self._latency
        never = 1e18
        for rate in np.unique(self._rate).tolist():
            marks = self._control.marking(rate, ports.mtu_bytes)
            if ports.mark_from_bytes is not None:
                most = 1.0 if ports.mark_probability is None else ports.mark_probability
                marks = (
                    float(ports.mark_from_bytes),
                    float(ports.mark_all_bytes or ports.mark_from_bytes),
                    most,
                )
            one = links["capacity"] == np.floor(rate)
            low, high, most = marks or (never, never, 0.0)
            links["mark_from"][one], links["mark_all"][one], links["mark_most"][one] = low, high, most
            room = float(ports.buffer_bytes or max(256 * ports.mtu_bytes, 4 * high if marks else 0))
            pause = float(ports.pause_bytes or room / 2)
            links["buffer"][one] = room
            links["pause"][one] = pause
            links["resume"][one] = max(pause - 2 * ports.mtu_bytes, pause / 2)
        return links

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        numbers = self._numbers.number(job, src, dst, channel)
        self._extend("channel_of", first + len(src))
        self._fluid["channel_of"][first : first + len(src)] = numbers
        old = self._conns_used
        if len(self._numbers) > old:
            self._conns_used = len(self._numbers)
            self._add_conns(first, numbers, old, np.stack([np.full(len(src), job), src, dst], axis=1))

    def _add_conns(self, first: int, numbers: I32, old: int, ends: NDArray[Any]) -> None:
        count = len(self._numbers)
        fluid = self._fluid
        new, row = np.unique(numbers, return_index=True)
        row = row[new >= old]
        ptr, links = self._arrays["path_ptr"], self._arrays["path_link"]
        begin = ptr[first + row]
        hops = ptr[first + row + 1] - begin
        total = int(hops.sum())
        base = self._hops_used + np.cumsum(hops) - hops
        conn = np.repeat(np.arange(old, count), hops)
        place = np.arange(total) - np.repeat(np.cumsum(hops) - hops, hops)
        link = links[np.repeat(begin, hops) + place]
        self._max_hops = max(self._max_hops, int(hops.max(initial=1)))
        self._hops_used += total
        self._extend("hops", self._hops_used)
        self._extend("pairs", self._hops_used)
        added = fluid["hops"][self._hops_used - total : self._hops_used]
        added["link"], added["conn"], added["port"] = link, conn, link * NUM_CLASSES
        ends_at = np.cumsum(hops)
        packet = np.ceil(self._ports.mtu_bytes * 8e12 / self._rate[link])
        latency = self._latency[link].astype(np.float64)
        self._extend("conns", count)
        mine = fluid["conns"][old:count]
        mine["hop"], mine["hops"] = base, hops
        mine["flow"] = mine["tail"] = mine["place"] = mine["due"] = mine["coflow"] = _NONE
        mine["budget"] = 1e30
        sums = np.concatenate([np.zeros((1, 2)), np.cumsum(np.stack([latency, packet], axis=1), axis=0)])
        both = sums[ends_at] - sums[ends_at - hops]
        heads = ends_at - hops
        has = hops > 0
        mine["latency"] = both[:, 0]
        mine["base"] = 2 * both[:, 0] + both[:, 1]
        mine["line"][has] = np.floor(self._rate[link[heads[has]]])
        mine["store"][has] = both[has, 1] - packet[heads[has]]
        grid = np.maximum(mine["base"] / 8, 1.0).astype(np.int64)
        mine["grid"] = [1 << (int(one).bit_length() - 1) for one in grid.tolist()]
        self._extend("ends", count)
        fluid["ends"][old:count] = ends[row]
        self._extend("drains", count)
        self._extend("state", count)
        self._extend("changed", count)
        self._extend("updated", 2 * count + 2)

    def _open_group(self, group: FlowGroup) -> None:
        if not 0 <= group.priority < NUM_CLASSES:
            raise NetworkError(
                f"congestion: priority {group.priority} is not one of the {NUM_CLASSES} classes 0 to 7"
            )
        self._extend("traits", group.handle + 1)
        one = self._fluid["traits"][group.handle]
        one["weight"], one["priority"], one["job"] = group.weight, group.priority, group.job
        one["coflow"] = _NONE
        if group.coflow_bytes > 0:
            number = self._coflows.setdefault(group.coflow, len(self._coflows))
            self._extend("coflows", number + 1)
            self._fluid["coflows"]["size"][number] = group.coflow_bytes
            one["coflow"] = number
        meta = self._arrays["meta"]
        meta[CLASSES] = max(int(meta[CLASSES]), group.priority + 1)

    def _extend(self, name: str, need: int) -> None:
        old = self._fluid[name]
        if need > len(old):
            new = np.zeros((max(need, 2 * len(old)), *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            self._fluid[name] = new

    def _expect_model(self, rows: int) -> None:
        self._extend("flows", min(rows, 1 << 16))

    def _grow_model(self, what: int) -> None:
        fluid = self._fluid
        if what == DEADLOCK:
            raise NetworkError(self._circle())
        if what == NEED_FLOWS:
            self._extend("flows", max(1024, 2 * len(fluid["flows"])))
        elif what == NEED_ROWS:
            need = max(256, 2 * len(fluid["rows"]), len(fluid["instant"]))
            fluid["rows"] = np.zeros(need, ROW)
            fluid["telemetry"] = np.zeros((need, self._max_hops), TELEMETRY)
            fluid["before"] = np.zeros((need, MAX_STATE + 2))
        else:
            for name in ("instant", "spare", "other", "third"):
                self._extend(name, len(self._arrays["calendar"].events))

    def _run(self, core: Core, horizon_ps: int) -> int:
        if self._fluid["telemetry"].shape[1] < self._max_hops:
            self._fluid["telemetry"] = np.zeros((len(self._fluid["rows"]), self._max_hops), TELEMETRY)
        fluid = Fluid(**{name: self._fluid[name] for name in Fluid._fields})
        if not self._in_python:
            assert self._driver is not None
            return int(self._driver(core, fluid, self._parameters, horizon_ps))
        while (status := int(run_congestion(core, fluid, horizon_ps))) == ASK:
            count = int(core.meta[WAITING_N])
            ask_in_python(self._control, count, fluid.rows, fluid.telemetry, fluid.state)
            check_answers(self._control, fluid.rows[:count], fluid.state, self._describe)
        return status

    def _circle(self) -> str:
        """The ports of a deadlock, as an error says it."""
        ports, pairs, meta = self._fluid["ports"], self._fluid["pairs"], self._arrays["meta"]
        first = int(meta[STUCK]) - 1
        came = {first: -1}
        for port in (queue := [first]):
            at = int(ports["blocks"][port])
            while at != _NONE:
                before = int(pairs["port"][at])
                if before == first:
                    names = [first]
                    while port != first:
                        names.append(port)
                        port = came[port]
                    shown = ", ".join(self._topology.link_name(one // NUM_CLASSES) for one in names)
                    return (
                        f"congestion: PFC deadlock at {int(meta[INSTANT])} ps: {shown} pause each other in a "
                        "circle; take a routing without circles, a larger pfc_threshold, or pfc: false"
                    )
                if before not in came:
                    came[before] = port
                    queue.append(before)
                at = int(pairs["next"][at])
        raise AssertionError("no circle")

    def _describe(self, conn: int) -> str:
        job, src, dst = self._fluid["ends"][conn].tolist()
        names = self._topology.node_names
        return f"the connection of job {job} from {names[src]} to {names[dst]}"

    def _next_instant(self) -> int:
        # A grant is closed for completions, so it has to end before a drain that was not taken yet.
        start, count = super()._next_instant(), int(self._arrays["meta"][DRAIN_N])
        return min(start, int(self._fluid["drains"][0]["time"]) - 1) if count else start

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`; ``extra`` has what ns-3 reports, and
        pauses.

        ``drops`` and ``marks`` count packets; queue percentiles are over bytes served, to an eighth of an
        octave. All classes of a link together.
        """
        found = super().statistics()
        fluid, meta = self._fluid, self._arrays["meta"].copy()
        links, ports, histogram = (fluid[k].copy() for k in ("links", "ports", "histogram"))
        now = int(meta[GRANT])
        for link in np.flatnonzero((ports["load"] > 0).reshape(-1, NUM_CLASSES).any(axis=1)).tolist():
            settle_link(meta, found.busy_ps, links, ports, histogram, fluid["settings"], link, now)
        ports = ports.reshape(-1, NUM_CLASSES)
        paused = ports["paused_ps"] + np.where(ports["paused"] > 0, now - ports["since"], 0)
        mtu = self._ports.mtu_bytes
        extra: Mapping[str, F64] = {
            "drops": ports["dropped"].sum(axis=1) / mtu,
            "marks": ports["marked"].sum(axis=1) / mtu,
            "queue_p50_bytes": _percentile(histogram, 0.5),
            "queue_p99_bytes": _percentile(histogram, 0.99),
            "queue_max_bytes": ports["peak"].max(axis=1),
            "pause_ps": paused.sum(axis=1).astype(np.float64),
        }
        return NetworkStatistics(
            found.link_bytes,
            int(meta[BIN_PS]),
            found.busy_ps,
            found.flows_started,
            found.flows_completed,
            found.events,
            extra,
        )

    @property
    def control_updates(self) -> int:
        """How often a control was asked about a connection."""
        return int(self._arrays["meta"][UPDATES_N])


def _percentile(histogram: F64, share: float) -> F64:
    """The queue that this share of bytes met at most, the middle of its bin."""
    total = histogram.cumsum(axis=1)
    reached = (total >= share * total[:, -1:]).argmax(axis=1)
    octave, part = np.divmod(np.maximum(reached - 1, 0), 8)
    middle = 2.0**octave * (1.0 + (part + 0.5) / 8.0)
    return np.where((reached == 0) | (total[:, -1] == 0), 0.0, middle)


def _compile_driver(control: Control) -> Any:
    """The loop around a user's kernel."""
    from cosim.network.jit import compiled_here

    kernel = type(control).kernel
    waiting = WAITING_N

    def drive(core: Core, fluid: Fluid, parameters: F64, horizon: int) -> int:
        while True:
            status = run_congestion(core, fluid, horizon)
            if status != ASK:
                return int(status)
            kernel(core.meta[waiting], fluid.rows, fluid.telemetry, fluid.state, parameters)  # type: ignore[misc]

    return compiled_here(drive)


__all__ = ["CongestionNetwork", "Ports"]
