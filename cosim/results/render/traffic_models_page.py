"""A table of models against models: what traffic each makes, and how far each is from each."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.results.render.page import Lines, Page, PageTable, Section
from cosim.results.render.text import percent
from cosim.results.traffic.analysis import TrafficAnalysis
from cosim.results.traffic.beside import TrafficDifference, beside
from cosim.units import format_size, format_time


def models_page(analyses: Sequence[TrafficAnalysis]) -> Page:
    """One row for each, then each beside each: the column's over the row's."""
    head = ["models", "bytes", "transfers", "median", "99 %", "period", "busy", "skew", "patterns"]
    rows = [head, *(_row(one) for one in analyses)]
    pairs = [[beside(a, b) for b in analyses] for a in analyses]
    names = [one.name for one in analyses]
    return [
        Section([PageTable(rows, left=(0, 8))]),
        Section([PageTable(_each("bytes, column / row", names, pairs, "bytes_ratio"))]),
        Section([PageTable(_each("period, column / row", names, pairs, "period_ratio"))]),
        Section([PageTable(_each("who sends to whom: cosine", names, pairs, "cosine"))]),
        Section([PageTable(_each("sizes: Kolmogorov-Smirnov", names, pairs, "ks"))]),
        Section([Lines(["4 iterations on 8 A100s, a batch of 64; --set changes that"])]),
    ]


def _row(one: TrafficAnalysis) -> list[str]:
    part = one.parts[0] if one.parts else None
    if part is None:
        return [f"  {one.name}", "0 B", "0", *["-"] * 6]
    period = part.periods[0].period_ps if part.periods else None
    return [
        f"  {one.name}",
        format_size(one.size_bytes),
        f"{part.transfers:,}",
        format_size(part.sizes[2]),
        format_size(part.sizes[4]),
        "none found" if period is None else format_time(round(period)),
        percent(part.busy_ps / max(part.end_ps - part.start_ps, 1)),
        f"{part.skew:.2f}",
        ", ".join(dict.fromkeys(pattern.name for pattern, _ in part.patterns)) or "-",
    ]


def _each(
    title: str, names: Sequence[str], pairs: Sequence[Sequence[TrafficDifference]], field: str
) -> list[list[str]]:
    rows = [[title, *names]]
    for name, row in zip(names, pairs, strict=True):
        values = [getattr(one, field) for one in row]
        rows.append([f"  {name}", *("-" if value is None else f"{value:.3g}" for value in values)])
    return rows
