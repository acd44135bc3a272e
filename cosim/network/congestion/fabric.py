"""What a fabric is to the congestion network: the links and ports of a topology, as a scenario and a control
have them, and what is read off them when a run ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.network.congestion.contract import Control
from cosim.network.congestion.control import marks_of
from cosim.network.congestion.credits import Credits, Loops
from cosim.network.congestion.state import BINS, LINE, PASSING, PORT, PORT_LINK, SETTINGS
from cosim.network.flows import F64, I32, I64
from cosim.network.plugged import state_width
from cosim.registry import name_of
from cosim.topology.graph import Topology
from cosim.units import NEVER

_NONE = -1


FRAME_BYTES = 18
"""A packet has these beyond its MTU: Ethernet's header, 14, and its check sequence, 4 (IEEE 802.3). Preamble
and gap, 20 more, are not modelled.
"""


@dataclass(frozen=True)
class PortSettings:
    """What a scenario says of ports; None: as the control has it."""

    mtu_bytes: int = 9000
    buffer_bytes: int | None = None
    mark_from_bytes: int | None = None
    mark_all_bytes: int | None = None
    mark_probability: float | None = None
    lossless: bool | None = None
    trims: bool | None = None
    pause_bytes: int | None = None
    queues_at_bps: float | None = None
    least_rto_ps: int = 500_000_000
    rest: bool = True
    headers: bool = True
    tolerance: float = 0.0
    credits: Credits | None = None


def packet_bytes(control: Control, ports: PortSettings) -> tuple[int, int]:
    """Return a full packet's payload and its bytes on the wire.

    Raises
    ------
    NetworkError
        Headers leave no room.
    """
    mtu_bytes = ports.mtu_bytes
    if not ports.headers:
        return mtu_bytes, mtu_bytes
    payload = mtu_bytes - control.header_bytes
    if payload < 1:
        name = name_of("cosim.controls", type(control)) or type(control).__name__
        raise NetworkError(
            f"congestion: an mtu of {mtu_bytes} bytes has no room beside the {control.header_bytes} bytes of "
            f"headers that {name} has in each packet"
        )
    return payload, mtu_bytes + FRAME_BYTES + control.telemetry_bytes


def make_settings(control: Control, scaling: tuple[float, float], ports: PortSettings) -> NDArray[Any]:
    """What control and scenario say, for ``CongestionState.settings``."""
    found = np.zeros(1, SETTINGS)
    found["payload"], found["mss"] = packet_bytes(control, ports)
    found["gives_rate"] = control.gives == "rate"
    found["paced"] = control.paced
    found["lossless"] = control.lossless if ports.lossless is None else ports.lossless
    found["lossless"] |= ports.credits is not None
    found["trims"] = control.trims if ports.trims is None else ports.trims
    found["slope"], found["intercept"] = scaling
    found["settles"] = control.settles and not control.telemetry
    # Growth that depends on what all of a coflow have sent hears of it only where none of them is left out.
    found["rests"] = ports.rest and scaling == (0.0, 1.0)
    found["wants_telemetry"] = control.telemetry
    found["credits"] = control.credits
    found["num_states"] = state_width(control)
    found["least_rto"] = ports.least_rto_ps
    found["tolerance"] = ports.tolerance
    found["scaled"] = scaling != (0.0, 1.0) and not control.scales_itself
    return found


def make_links(control: Control, ports: PortSettings, topology: Topology) -> NDArray[Any]:
    """The links of a topology, with the thresholds of their queues."""
    rate_bps = topology.link_rate_bps
    links = np.zeros(len(rate_bps), PORT_LINK)
    links["back_first"] = _NONE
    links["capacity"] = links["nominal"] = np.floor(rate_bps)
    links["latency"] = topology.link_latency_ps
    links["loop"] = NEVER
    never = 1e18
    for rate in np.unique(rate_bps).tolist():
        marks = marks_of(control, rate, ports.mtu_bytes)
        part = rate / (ports.queues_at_bps or rate)
        if ports.mark_from_bytes is not None:
            most = 1.0 if ports.mark_probability is None else ports.mark_probability
            marks = (
                part * ports.mark_from_bytes,
                part * (ports.mark_all_bytes or ports.mark_from_bytes),
                most,
            )
        one = links["capacity"] == np.floor(rate)
        low, high, most = marks or (never, never, 0.0)
        links["mark_from"][one], links["mark_all"][one], links["mark_most"][one] = low, high, most
        room = float(max(256 * ports.mtu_bytes, 4 * high if marks else 0))
        if ports.buffer_bytes is not None:
            room = part * ports.buffer_bytes
        pause = room / 2 if ports.pause_bytes is None else part * ports.pause_bytes
        links["buffer"][one] = room
        links["pause"][one] = pause
        links["resume"][one] = max(pause - 2 * ports.mtu_bytes, pause / 2)
    if ports.credits is not None:
        packet = packet_bytes(control, ports)[1]
        room = ports.credits.buffer
        # It goes on by packets; where there is room for many, by several: the same on average, less to do.
        links["pause"], links["resume"] = room, max(room - max(packet, room / 16), room / 2)
        links["loop"] = Loops(ports.credits, packet).loop_bps(rate_bps, topology.link_latency_ps)
    if control.credits and not topology.routing.endpoints_forward:
        links["mark_from"][topology.link_dst < topology.num_endpoints] = never
    return links


def make_ports(links: int, before: NDArray[Any] | None = None) -> NDArray[Any]:
    """The ports of one class, after those of the classes before it."""
    old = 0 if before is None else len(before)
    ports = np.zeros(old + links, PORT)
    if before is not None:
        ports[:old] = before
    new = ports[old:]
    new["first"] = new["inputs"] = new["head"] = new["tail"] = _NONE
    new["duty"] = 1.0
    new["level"] = NEVER
    new["left"] = -1.0  # nobody has been told of any
    new["link"] = np.arange(links)
    return ports


def make_passing(topology: Topology, *, balanced: bool) -> NDArray[Any]:
    """Which links flows can't go round: all, where paths stay; else those of endpoints that have one each
    way.
    """
    passing = np.zeros(topology.num_links, PASSING)
    if not balanced and topology.changes is None:
        passing["counts"] = 1
        return passing
    for end in (topology.link_src, topology.link_dst):
        alone = np.bincount(end, minlength=topology.num_nodes)[end] == 1
        passing["counts"] |= alone & (end < topology.num_endpoints)
    return passing


def make_lines(links: int) -> NDArray[Any]:
    """What the queues of one class of ports hold, told apart, while they hold nothing."""
    lines = np.zeros(links, LINE)
    lines["head"] = _NONE
    return lines


def other_way(src: I32, dst: I32) -> I64:
    """The link of the same cable the other way, -1 where there is none; of parallel ones in their order."""
    found = np.full(len(src), _NONE, np.int64)
    waiting: dict[tuple[int, int], list[int]] = {}
    for link, (a, b) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        others = waiting.get((b, a))
        if others:
            found[link] = others.pop(0)
            found[found[link]] = link
        else:
            waiting.setdefault((a, b), []).append(link)
    return found


def circle(ports: NDArray[Any], inputs: NDArray[Any], first: int) -> list[int]:
    """The ports that pause each other, from ``first`` on round to it."""
    came = {first: -1}
    for port in (queue := [first]):
        at = int(ports["inputs"][port])
        while at != _NONE:
            before = int(inputs["port"][at])
            stopped = inputs["stopped"][at] != 0
            if stopped and before == first:
                found = [first]
                while port != first:
                    found.append(port)
                    port = came[port]
                return found
            if stopped and before not in came:
                came[before] = port
                queue.append(before)
            at = int(inputs["next"][at])
    raise AssertionError("no circle")  # pragma: no cover


def percentile(histogram: F64, share: float) -> F64:
    """The queue that this share of bytes met at most: within a bin, 3 % wide at most, by proportion."""
    total = histogram.cumsum(axis=1)
    wanted = share * total[:, -1]
    reached = (total >= wanted[:, None]).argmax(axis=1)
    row = np.arange(len(histogram))
    inside = (wanted - total[row, reached - 1]) / np.maximum(histogram[row, reached], 1e-300)
    octave, part = np.divmod(np.maximum(reached - 1, 0), BINS)
    found = 2.0 ** (octave + 8) * (1.0 + (part + np.clip(inside, 0.0, 1.0)) / BINS)
    return np.where((reached == 0) | (total[:, -1] == 0), 0.0, found)
