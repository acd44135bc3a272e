"""A topology as an SVG file: the map of a report without loads, lines as wide as their rates."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from cosim.results.report.fabric import FabricMap, draw_map
from cosim.topology.graph import Topology
from cosim.units import format_rate

_WIDE = 1100
_MARGIN = 46
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #1d2430; } .soft { fill: #667085; } .paper { fill: #ffffff; }
path { fill: none; stroke: #8fa9e0; stroke-linecap: round; } rect.box { fill: #f6f7f9; stroke: #667085;
stroke-width: 0.8; } @media (prefers-color-scheme: dark) {
  text { fill: #e6e9ee; } .soft { fill: #98a2b3; } .paper { fill: #14171c; } path { stroke: #4c6bb0; }
  rect.box { fill: #1c2129; stroke: #98a2b3; }
}
"""


def fabric_svg(topology: Topology) -> str:
    """The file's text."""
    links = topology.link_src.astype(np.int64), topology.link_dst.astype(np.int64)
    drawn = draw_map(topology.node_names, topology.num_endpoints, *links, topology.dims)
    rows = len(np.unique(drawn.y.round(6)))
    high = 640 if rows > 6 else max(220, min(620, rows * 120))
    x = _MARGIN + drawn.x * (_WIDE - 2 * _MARGIN)
    y = 60 + drawn.y * (high - 120)
    said = (
        f"{topology.name}: {topology.num_endpoints:,} endpoints, "
        f"{topology.num_nodes - topology.num_endpoints:,} switches, {topology.num_links:,} links"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDE} {high}" role="img">',
        f"<title>{escape(said)}</title><style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDE}" height="{high}"/>',
        f'<text x="16" y="24">{escape(said)}</text>',
        *_lines(topology, drawn, x, y),
        *(_box(drawn, k, float(x[k]), float(y[k])) for k in range(len(drawn.label))),
        f'<text class="soft" x="16" y="{high - 12}">{escape(_rates(topology))}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _lines(topology: Topology, drawn: FabricMap, x: np.ndarray, y: np.ndarray) -> list[str]:
    on_line = drawn.line >= 0
    rate = np.zeros(len(drawn.a))
    np.maximum.at(rate, drawn.line[on_line], topology.link_rate_bps[on_line])
    count = np.bincount(drawn.line[on_line], minlength=len(drawn.a))
    most = float(rate.max(initial=1))
    out = []
    for k, (a, b) in enumerate(zip(drawn.a.tolist(), drawn.b.tolist(), strict=True)):
        width = 0.7 + 2.3 * math.sqrt(rate[k] / most)
        told = f"{drawn.label[a]} and {drawn.label[b]}: {count[k]} links, {format_rate(rate[k])} at most"
        across, down = x[b] - x[a], y[b] - y[a]
        middle = (x[a] + x[b]) / 2 - drawn.bend[k] * down, (y[a] + y[b]) / 2 + drawn.bend[k] * across
        way = f"M{x[a]:.1f} {y[a]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {x[b]:.1f} {y[b]:.1f}"
        out.append(f'<path d="{way}" stroke-width="{width:.2f}"><title>{escape(told)}</title></path>')
    return out


def _box(drawn: FabricMap, k: int, x: float, y: float) -> str:
    wide = max(5.0, min(96.0, float(drawn.room[k]) * (_WIDE - 2 * _MARGIN) - 4))
    tall = min(22.0, max(8.0, wide))
    label, size = drawn.label[k], int(drawn.size[k])
    names = [f"{size} x {label.split(' ... ')[0]}", str(size)] if size > 1 else [label, label.split(".")[-1]]
    fitting = next((name for name in names if len(name) * 6.2 < wide - 4), "")
    text = f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(fitting)}</text>'
    round_ = 3 if drawn.is_endpoint[k] else 8
    title = label if size == 1 else f"{label} ({size})"
    place = f'x="{x - wide / 2:.1f}" y="{y - tall / 2:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
    return (
        f'<g><title>{escape(title)}</title><rect class="box" {place} rx="{round_}"/>'
        f"{text if fitting else ''}</g>"
    )


def _rates(topology: Topology) -> str:
    rates, counts = np.unique(topology.link_rate_bps, return_counts=True)
    told = [f"{count:,} links of {format_rate(rate)}" for rate, count in zip(rates, counts, strict=True)]
    more = f" and {len(told) - 6} other rates" if len(told) > 6 else ""
    return ", ".join(told[:6]) + more
