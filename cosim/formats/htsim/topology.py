"""htsim's ``.topo``: a fat tree of two or three tiers, by the radix of its switches.

::

    Nodes 32
    Tiers 2
    Podsize 32
    Tier 0
    Downlink_speed_Gbps 100
    Radix_Down 8
    Radix_Up 2
    Downlink_Latency_ns 1000
    Tier 1
    Downlink_speed_Gbps 100
    Radix_Down 4

Each tier says its links down: tier 0 to hosts, 1 to top-of-rack switches, 2 to aggregation switches.
``Bundle`` cables join two switches. Aggregation switch a of a pod leads to core switches a, a + A, a + 2 A
..., where a pod has A. A switch's latency is on its links, in the direction in which it sends. As htsim's
``fat_tree_topology.cpp`` builds them (github.com/ultraethernet/uet-htsim).

Not modelled: sizes of queues, which are the network's settings.
"""

from __future__ import annotations

from pathlib import Path

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import read_text
from cosim.topology.file_format import Cables, TopologyFormat
from cosim.units import PS_PER_NS

_WHOLE = ("nodes", "tiers", "podsize", "tier")
_OF_TIER = (
    "downlink_speed_gbps", "radix_up", "radix_down", "queue_up", "queue_down", "oversubscribed", "bundle",
    "switch_latency_ns", "downlink_latency_ns",
)  # fmt: skip
_MOST = 1 << 20


class HtsimTopology(TopologyFormat):
    """htsim's .topo: a fat tree of two or three tiers"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        words = [line.split()[0].lower() for line in start.splitlines() if line.strip() and line[:1] != "#"]
        if not words or words[0] not in _WHOLE or "tiers" not in words:
            return "it doesn't say Nodes, Tiers and Podsize"
        return None

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        said, tiers, lines = _said(path, cables, report)
        nodes, count = said["nodes"], said["tiers"]
        pod = said.get("podsize", nodes)
        if count not in (2, 3) or len(tiers) != count:
            raise cables.wrong(
                f"Tiers {count}, and it describes {len(tiers)}", lines.get("tiers"), "2 or 3, all of them"
            )
        for number, tier in enumerate(tiers):
            wanted = ("downlink_speed_gbps", "radix_down", *(("radix_up",) if number < count - 1 else ()))
            for name in wanted:
                if name not in tier:
                    raise cables.wrong(
                        f"tier {number} has no {name}", None, f"{name} NUMBER below Tier {number}"
                    )
        if count == 2:
            pod = nodes
        _check(cables, nodes % pod == 0, f"{nodes} nodes are no whole number of pods of {pod}")
        tor_down, up = tiers[0]["radix_down"], tiers[0]["radix_up"]
        _check(
            cables,
            pod % tor_down == 0,
            f"a pod of {pod} is no whole number of switches with {tor_down} ports down",
        )
        bundle = tiers[1].get("bundle", 1)
        _check(cables, up % bundle == 0, f"Radix_Up {up} is no multiple of tier 1's Bundle {bundle}")
        tors, aggs = pod // tor_down, up // bundle
        below = tiers[1]["radix_down"]
        _check(
            cables,
            tors * bundle == below,
            f"switches of tier 1 have Radix_Down {below}, and a pod has {tors} below by {bundle} cables",
        )
        rate, latency, switch = (
            [tier.get(name, 0) for tier in tiers]
            for name in ("downlink_speed_gbps", "downlink_latency_ns", "switch_latency_ns")
        )

        def join(lower: str, upper: str, tier: int, times: int) -> None:
            ps = latency[tier] * PS_PER_NS
            below = switch[tier - 1] * PS_PER_NS if tier else 0
            for _ in range(times):
                cables.link(
                    lower,
                    upper,
                    rate_bps=rate[tier] * 1e9,
                    latency_ps=ps + below,
                    back_ps=ps + switch[tier] * PS_PER_NS,
                )

        for host in range(nodes):
            cables.node(f"host{host}", "endpoint")
        for host in range(nodes):
            cables.node(f"tor{host // tor_down}", "switch")
            join(f"host{host}", f"tor{host // tor_down}", 0, 1)
        for one in range(nodes // tor_down):
            for agg in range(aggs):
                upper = f"agg{one // tors * aggs + agg}"
                cables.node(upper, "switch")
                join(f"tor{one}", upper, 1, bundle)
        if count == 3:
            _core(cables, tiers, nodes // pod, aggs, join)

    # -- what the file says --------------------------------------------------------------------------------


def _core(cables: Cables, tiers: list[dict[str, int]], pods: int, aggs: int, join: object) -> None:
    bundle, up, down = tiers[2].get("bundle", 1), tiers[1]["radix_up"], tiers[2]["radix_down"]
    _check(cables, up % bundle == 0, f"tier 1's Radix_Up {up} is no multiple of tier 2's Bundle {bundle}")
    _check(
        cables,
        pods * bundle == down,
        f"core switches have Radix_Down {down}, and there are {pods} pods, by {bundle} cables each",
    )
    assert callable(join)
    for pod in range(pods):
        for agg in range(aggs):
            for further in range(up // bundle):
                core = f"core{agg + further * aggs}"
                cables.node(core, "switch")
                join(f"agg{pod * aggs + agg}", core, 2, bundle)


def _check(cables: Cables, right: bool, message: str) -> None:
    if not right:
        raise cables.wrong(message, hint="htsim refuses it, too: correct radix, bundle or pod size")


def _said(
    path: Path, cables: Cables, report: ReportBuilder
) -> tuple[dict[str, int], list[dict[str, int]], dict[str, int]]:
    """What is said of the whole, of each tier, and the line of each of the former."""
    whole: dict[str, int] = {}
    lines: dict[str, int] = {}
    tiers: list[dict[str, int]] = []
    for number, line in enumerate(read_text(path, TopologyError).splitlines(), 1):
        tokens = line.split("#")[0].split()
        if not tokens:
            continue
        name = tokens[0].lower()
        known = (*_WHOLE, *(_OF_TIER if tiers else ()))
        if name not in known or len(tokens) != 2:
            raise cables.wrong(f"{line.strip()[:60]!r}", number, f"a number behind one of {', '.join(known)}")
        text = tokens[1]
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
        least = 0 if name in ("tier", "queue_up", "queue_down") or name.endswith("_ns") else 1
        if not least <= value <= _MOST:
            raise cables.wrong(
                f"{tokens[0]} {text[:40]!r}", number, f"a whole number from {least} to {_MOST}"
            )
        if name == "tier":
            if value != len(tiers):
                raise cables.wrong(f"Tier {value} after {len(tiers)} tiers", number, f"Tier {len(tiers)}")
            tiers.append({})
            continue
        target = whole if name in _WHOLE else tiers[-1]
        if name in target:
            raise cables.wrong(f"{tokens[0]} is there twice", number, "once")
        target[name] = value
        if target is whole:
            lines[name] = number
        if name in ("queue_up", "queue_down", "oversubscribed"):
            report.ignored(f"{name} (queues are the network's, and radices say the rest)")
    for name in ("nodes", "tiers"):
        if name not in whole:
            raise cables.wrong(f"there is no line {name.capitalize()}", None, f"{name.capitalize()} NUMBER")
    return whole, tiers, lines
