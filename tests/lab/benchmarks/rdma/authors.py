"""Beside the simulator of HPCC's authors, in the configuration that they published.

It is github.com/alibaba-edu/High-Precision-Congestion-Control (ns-3.17), built by hand with a compiler of
today, nothing changed but how often it writes its queues down. What it printed stands in ``AUTHORS``: mean
and last completion time in us, median, 99th percentile and largest queue of the receiver's link in kB,
looked at each 100 ns until the last flow ends. Its completion is the sender's, when the last
acknowledgement has come; a message is complete here half a round trip (2 us) earlier.

The configuration is that of its ``run.py``, at 25 and 100 Gb/s: one switch with 16 MB for each 50 Gb/s,
links of 1 us, payloads of 1,000 bytes, a link stopped at an eighth of the free buffer. DCQCN: marks from
100 to 400 kB with 20 % at 25 Gb/s, timers of 300, 4 and 1 us, g = 1/256, one stage of fast recovery,
increases of 5 and 50 Mb/s at 25 Gb/s, at least 1 Gb/s, no window. HPCC: eta 0.95, no additive stages, 10
Mb/s more at 25 Gb/s. TIMELY: 10 Mb/s more at 10 Gb/s. DCTCP: K = 30 kB at 10 Gb/s, starting with a
bandwidth-delay product.
"""

from __future__ import annotations

from typing import Any

from cosim.topology.graph import Topology
from tests.adapters.ns3_worlds import graph, star
from tests.lab.benchmarks.ns3_congestion import Case, Flow
from tests.lab.benchmarks.rdma.sessions import Ran, packets

SENDERS = 16
PAYLOAD = 1000
TO_RECEIVER = 2 * SENDERS + 1
"""The link from the switch."""
BARE_US = 4.16
"""Their round trip without queues at 100 Gb/s."""
PATTERNS = {
    "incast": "16 senders, 0.5 MB each",
    "four": "4 senders, 6.25 MB each",
    "pair": "2 senders, 12.5 MB (100 Gb/s: 50 MB) each, the second 1 ms later",
}
AUTHORS: dict[tuple[str, str, int], tuple[int, ...]] = {
    ("incast", "hpcc", 25): (2629, 3032, 1, 172, 247),
    ("incast", "hpcc", 100): (687, 750, 2, 778, 854),
    ("incast", "dcqcn", 25): (2409, 2777, 555, 1330, 1336),
    ("incast", "dcqcn", 100): (810, 862, 950, 3673, 3692),
    ("incast", "timely", 25): (2569, 2700, 3585, 5297, 5348),
    ("incast", "timely", 100): (675, 676, 3935, 7840, 7921),
    ("incast", "dctcp", 25): (2501, 2686, 73, 160, 236),
    ("incast", "dctcp", 100): (667, 668, 249, 757, 819),
    ("four", "hpcc", 25): (7025, 9211, 0, 2, 51),
    ("four", "hpcc", 100): (2129, 2306, 1, 23, 172),
    ("four", "dcqcn", 25): (8853, 9314, 37, 355, 409),
    ("four", "dcqcn", 100): (2515, 2657, 75, 1012, 1130),
    ("four", "timely", 25): (9777, 9882, 32, 828, 1004),
    ("four", "timely", 100): (2439, 2538, 177, 3196, 3397),
    ("four", "dctcp", 25): (8379, 8379, 48, 48, 48),
    ("four", "dctcp", 100): (2079, 2079, 165, 165, 165),
    ("pair", "hpcc", 25): (7849, 8173, 0, 1, 17),
    ("pair", "hpcc", 100): (8667, 9151, 0, 1, 55),
    ("pair", "dcqcn", 25): (8317, 8856, 1, 248, 255),
    ("pair", "dcqcn", 100): (8324, 8589, 1, 712, 746),
    ("pair", "timely", 25): (8442, 8679, 0, 346, 492),
    ("pair", "timely", 100): (8264, 8401, 1, 1017, 1570),
    ("pair", "dctcp", 25): (7379, 7379, 16, 16, 16),
    ("pair", "dctcp", 100): (7304, 7304, 56, 56, 56),
}
SPREAD: dict[tuple[str, int], tuple[int, ...]] = {
    ("hpcc", 25): (2425, 2638, 392, 0),
    ("hpcc", 100): (618, 659, 151, 17),
    ("dcqcn", 25): (2184, 2511, 1026, 16),
    ("dcqcn", 100): (574, 587, 476, 17),
    ("timely", 25): (2398, 2458, 1413, 17),
    ("timely", 100): (664, 691, 519, 17),
}
"""What it printed of two switches of 2 MB with 16 hosts each and a cable of four times the rate between: 14
of one send to one of the other (mean, last), two to another one (mean); and how many links were stopped."""


def flows(pattern: str, gbps: int) -> tuple[Flow, ...]:
    """The same as there."""
    if pattern == "incast":
        return tuple((k, SENDERS, 500_000, 0.0) for k in range(SENDERS))
    if pattern == "four":
        return tuple((k, SENDERS, 6_250_000, 0.0) for k in range(4))
    return tuple((k, SENDERS, 500_000 * gbps, 1000.0 * k) for k in range(2))


def control(name: str, gbps: int) -> dict[str, Any]:
    """As ``run.py`` has it, in the terms of here."""
    bdp = gbps * 1e9 / 8 * BARE_US / 1e6
    kinds: dict[str, dict[str, Any]] = {
        "dcqcn": {"kind": "dcqcn", "preset": "connectx", "min_rate": "1Gbps"},
        "hpcc": {"kind": "hpcc", "max_stage": 0, "w_ai": round(4e-4 * bdp)},
        "timely": {"kind": "timely", "min_rate": f"{10 / gbps}Gbps"},
        "dctcp": {"kind": "dctcp", "threshold": f"{3 * gbps}kB", "initial_window": bdp / PAYLOAD},
    }
    return kinds[name]


def ran(topology: Topology, what: tuple[Flow, ...], name: str, gbps: int, **wanted: Any) -> Ran:
    """Ours; of each port an equal part of its switch's memory."""
    case = Case("authors", topology, what, PAYLOAD + 44)
    return packets(control(name, gbps), case, pfc=name != "dctcp", **wanted)


def _one_switch() -> list[str]:
    titles = ("mean, us", "last, us", "p50, kB", "p99, kB", "max, kB")
    lines = []
    for pattern, what in PATTERNS.items():
        lines += [what, f"{'':<14}" + "".join(f"{title:>17}" for title in titles) + f"{'drops':>7}"]
        for (at, name, gbps), theirs in AUTHORS.items():
            if at != pattern:
                continue
            room = f"{16e3 * gbps / 50 / (SENDERS + 1):.0f}kB"
            one = ran(star(SENDERS + 1, gbps), flows(pattern, gbps), name, gbps, buffer=room)
            extra = one.statistics.extra
            queue = (extra[f"queue_{key}_bytes"][TO_RECEIVER] / 1e3 for key in ("p50", "p99", "max"))
            ours = one.us.mean(), one.us.max(), *queue
            cells = [f"{a:>9.0f}{b:>8.0f}" for a, b in zip(theirs, ours, strict=True)]
            lines.append(f"{name:<8}{gbps:>4}G " + "".join(cells) + f"{extra['drops'].sum():>7.0f}")
        lines.append("")
    return lines


def _two_switches() -> list[str]:
    titles = ("mean, us", "last, us", "victims, us", "stopped")
    lines = ["PFC's spreading: 14 to one of another switch, two to another one", ""]
    lines.append(f"{'':<14}" + "".join(f"{title:>17}" for title in titles) + f"{'drops':>7}")
    what = tuple((k, 16 if k < 14 else 17, 500_000, 0.0) for k in range(16))
    for (name, gbps), theirs in SPREAD.items():
        ends = [(k, 32 + k // 16, float(gbps)) for k in range(32)] + [(32, 33, 4.0 * gbps)]
        cables = [link for a, b, rate in ends for link in ((a, b, rate, 10**6), (b, a, rate, 10**6))]
        one = ran(graph(32, cables), what, name, gbps, buffer=f"{2000 / 17:.0f}kB")
        extra = one.statistics.extra
        ours = one.us[:14].mean(), one.us.max(), one.us[14:].mean(), (extra["pause_ps"] > 0).sum()
        cells = [f"{a:>9.0f}{b:>8.0f}" for a, b in zip(theirs, ours, strict=True)]
        lines.append(f"{name:<8}{gbps:>4}G " + "".join(cells) + f"{extra['drops'].sum():>7.0f}")
    return [*lines, ""]


def _recovery() -> list[str]:
    """HPCC's paper, section 5.3: with it, it hardly matters what repairs losses, as there are few."""
    lines = [
        "recovery: 16 senders at 100 Gb/s through 2 MB: last completion in us, packets lost, sent again",
        "",
    ]
    ways: dict[str, dict[str, Any]] = {
        "PFC": {"pfc": True},
        "go-back-N": {"pfc": False, "alpha": 1, "retransmission": "go_back_n"},
        "selective": {"pfc": False, "alpha": 1, "retransmission": "selective"},
        "trimming": {"pfc": False, "alpha": 1, "trimming": True},
    }
    lines.append(f"{'':<10}" + "".join(f"{way:>24}" for way in ways))
    for name in ("hpcc", "dcqcn"):
        cells = []
        for wanted in ways.values():
            case = Case("recovery", star(SENDERS + 1), flows("incast", 100), PAYLOAD + 44)
            one = packets(control(name, 100), case, buffer=f"{2000 / 17:.0f}kB", **wanted)
            extra = one.statistics.extra
            lost = extra["drops"].sum() + extra.get("trims", extra["drops"]).sum() * ("trims" in extra)
            cells.append(f"{one.us.max():>10.0f}{lost:>7.0f}{extra['retransmissions'].sum():>7.0f}")
        lines.append(f"{name:<10}" + "".join(cells))
    return [*lines, ""]


def section() -> str:
    """Tables of each number there and here."""
    title = "the simulator of HPCC's authors, and ns3_rdma beside each number"
    return "\n".join([title, "", *_one_switch(), *_two_switches(), *_recovery()])
