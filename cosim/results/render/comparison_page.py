"""The page of ``cosim compare``: what was set differently, then what came out differently."""

from __future__ import annotations

from typing import Any

from cosim.results.compare import Comparison, Number, Row, Unit
from cosim.results.render.page import Lines, Page, PageTable, Section, points_section
from cosim.results.render.text import percent
from cosim.units import format_rate, format_size, format_time

_MAX_ROWS = 20
_MAX_LENGTH = 48
_MAX_ABSENT = 6


def comparison_page(comparison: Comparison, *, max_rows: int = _MAX_ROWS) -> Page:
    """The comparison, at most ``max_rows`` rows of each section that differ."""
    verdict = {
        True: "equal: every event at the same picosecond",
        False: "different",
        None: "not compared, since one run doesn't tell of messages",
    }[comparison.same_digest]
    head = [f"a: {comparison.name_a}", f"b: {comparison.name_b}", f"digests: {verdict}"]
    head += [
        f"{name}: a is faster than b with a probability of {percent(chance)}, by the compute models' errors"
        for name, chance in comparison.faster
    ]
    settings = []
    if comparison.settings is None:
        head.append("settings: not compared, since not both runs have a scenario.yaml")
    elif not comparison.settings:
        head.append("settings: equal")
    else:
        rows = [[f"  {s.key}", _shown(s.a), _shown(s.b)] for s in comparison.settings]
        settings.append(Section([PageTable([["settings", "a", "b"], *rows], left=(0, 1, 2))]))
    names = dict.fromkeys(row.section for row in comparison.rows)
    said = comparison.said
    first = [Section([Lines([said.sentence, *(f"  {line}" for line in said.lines)])])] if said else []
    return [
        *points_section(comparison.doubtful),
        *first,
        Section([Lines(head)]),
        *settings,
        *(_section(comparison, name, max_rows) for name in names),
    ]


def _section(comparison: Comparison, name: str, max_rows: int) -> Section:
    rows = [row for row in comparison.different if row.section == name]
    untold = _untold([row for row in comparison.untold if row.section == name])
    if not rows:
        return Section([Lines([f"{name}: no difference{' in what both tell' if untold else ''}", *untold])])
    cells = [[name, "", "a", "b", "b - a", "b / a"], *(_cells(row) for row in rows[:max_rows])]
    more = [Lines([f"  ... and {len(rows) - max_rows} more"])] if len(rows) > max_rows else []
    if untold:
        more.append(Lines(untold))
    return Section([PageTable(cells, left=(0, 1)), *more])


def _untold(rows: list[Row]) -> list[str]:
    """What a run doesn't tell, one line for each side."""
    lines = []
    for side, name in ((0, "a"), (1, "b")):
        items = dict.fromkeys(
            f"{row.item} {_words(row.key)}" if row.section != "run" else row.item
            for row in rows
            if (row.a, row.b)[side] is None
        )
        if items:
            shown = list(items)[:_MAX_ABSENT]
            more = f", ... ({len(items)} in all)" if len(items) > _MAX_ABSENT else ""
            lines.append(f"  {name} doesn't tell: {', '.join(shown)}{more}")
    return lines


def _shown(value: Any) -> str:
    shown = "-" if value is None else str(value)
    return shown if len(shown) <= _MAX_LENGTH else shown[: _MAX_LENGTH - 3] + "..."


def _cells(row: Row) -> list[str]:
    a, b = _value(row.a, row.unit), _value(row.b, row.unit)
    change = "-" if row.difference is None else _signed(row.difference, row.unit)
    ratio = "-" if row.ratio is None else f"{row.ratio:.4f}"
    return [f"  {row.item}", _words(row.key), a, b, change, ratio]


def _words(key: str) -> str:
    """``exposed.mean_ps`` as ``exposed mean``."""
    for suffix in ("_ps", "_bytes", "_bps"):
        key = key.removesuffix(suffix)
    return key.replace(".", " ").replace("_", " ")


def _value(value: Number | None, unit: Unit) -> str:
    if value is None:
        return "-"
    shown = {"ps": lambda v: format_time(int(v)), "bytes": format_size, "bps": format_rate, "share": percent}
    return shown[unit](value) if unit in shown else f"{value:,}"


def _signed(value: Number, unit: Unit) -> str:
    size = f"{100 * abs(value):.1f} points" if unit == "share" else _value(abs(value), unit)
    return f"{'-' if value < 0 else '+'}{size}"
