"""What differs between two runs: settings, answers, times, links.

Comparing is a mirror: ``compare(b, a)`` has the same rows as ``compare(a, b)`` with both sides exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cosim.results.collectives import CollectiveSummary
from cosim.results.store import StoredRun
from cosim.results.summary import JobSummary, Summary
from cosim.results.terminal import align, percent
from cosim.units import format_rate, format_size, format_time

Unit = Literal["ps", "bytes", "bps", "share", "count", "seconds"]
Number = int | float

_MAX_ROWS = 20
_Key = tuple[str, str, int, int, str]


@dataclass(frozen=True)
class Row:
    """One quantity in both runs; None where a run doesn't have it. ``key`` is its name in the summary."""

    section: str
    item: str
    key: str
    unit: Unit
    a: Number | None
    b: Number | None

    @property
    def difference(self) -> Number | None:
        """``b - a``."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def ratio(self) -> float | None:
        """``b / a``; None where ``a`` is zero."""
        return None if self.a is None or self.b is None or self.a == 0 else self.b / self.a


@dataclass(frozen=True)
class Setting:
    """A setting that differs, as a dotted key; ``None`` where a scenario doesn't have it."""

    key: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side. ``settings`` is None where a run has no scenario to compare.

    ``same_digest``: every message and every operation happened at the same picosecond in both.
    """

    name_a: str
    name_b: str
    same_digest: bool
    settings: tuple[Setting, ...] | None
    rows: tuple[Row, ...]

    @property
    def different(self) -> tuple[Row, ...]:
        """Rows whose sides differ."""
        return tuple(row for row in self.rows if row.a != row.b)

    def to_json(self) -> dict[str, Any]:
        """Plain values; every row with its difference and ratio."""
        data = asdict(self)
        for row, plain in zip(self.rows, data["rows"], strict=True):
            plain |= {"difference": row.difference, "ratio": row.ratio}
        return data


def compare(a: Summary | StoredRun, b: Summary | StoredRun) -> Comparison:
    """Two runs; jobs are matched by name, collectives by job, kind, algorithm, size and group, links by
    name. Settings are compared where both are stored runs with a ``scenario.yaml``.
    """
    summary_a, scenario_a = _parts(a)
    summary_b, scenario_b = _parts(b)
    both = scenario_a is not None and scenario_b is not None
    return Comparison(
        name_a=_title(a),
        name_b=_title(b),
        same_digest=summary_a.digest == summary_b.digest,
        settings=tuple(_settings(scenario_a, scenario_b)) if both else None,
        rows=tuple(_rows(summary_a, summary_b)),
    )


def render_comparison(comparison: Comparison, *, max_rows: int = _MAX_ROWS) -> str:
    """The comparison as text: what was set differently, then what came out differently."""
    lines = [f"a: {comparison.name_a}", f"b: {comparison.name_b}"]
    verdict = "equal: every event at the same picosecond" if comparison.same_digest else "different"
    lines.append(f"digests: {verdict}")
    if comparison.settings is None:
        lines += ["settings: not compared, since not both runs have a scenario.yaml"]
    elif not comparison.settings:
        lines += ["settings: equal"]
    else:
        table = [
            ["settings", "a", "b"],
            *([f"  {s.key}", _plain(s.a), _plain(s.b)] for s in comparison.settings),
        ]
        lines += ["", *align(table, left=(0, 1, 2))]
    for section in dict.fromkeys(row.section for row in comparison.rows):
        rows = [row for row in comparison.different if row.section == section]
        if not rows:
            lines += ["", f"{section}: no difference"]
            continue
        cells = [[section, "", "a", "b", "b - a", "b / a"], *(_cells(row) for row in rows[:max_rows])]
        lines += ["", *align(cells, left=(0, 1))]
        if len(rows) > max_rows:
            lines.append(f"  ... and {len(rows) - max_rows} more")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _parts(run: Summary | StoredRun) -> tuple[Summary, Any]:
    return (run.summary, run.scenario) if isinstance(run, StoredRun) else (run, None)


def _title(run: Summary | StoredRun) -> str:
    summary = run.summary if isinstance(run, StoredRun) else run
    text = f"{summary.name or 'run'} on {summary.topology}, network {summary.network}"
    return f"{run.directory}: {text}" if isinstance(run, StoredRun) else text


def _rows(a: Summary, b: Summary) -> Iterator[Row]:
    yield Row("run", "simulated time", "end_ps", "ps", a.end_ps, b.end_ps)
    yield Row("run", "messages", "num_messages", "count", a.num_messages, b.num_messages)
    total_a, total_b = a.traffic.total_bytes, b.traffic.total_bytes
    yield Row("run", "traffic", "traffic.total_bytes", "bytes", total_a, total_b)
    for key in ("p50_ps", "p99_ps", "max_ps"):
        item = f"message time {key.removesuffix('_ps')}"
        yield Row("run", item, f"fct.{key}", "ps", _get(a.fct, key), _get(b.fct, key))
    yield from _job_rows(a.jobs, b.jobs)
    yield from _collective_rows(a.collectives, b.collectives)
    yield from _link_rows(a, b)


def _job_rows(a: Sequence[JobSummary], b: Sequence[JobSummary]) -> Iterator[Row]:
    for name, (job_a, job_b) in _matched({j.name: j for j in a}, {j.name: j for j in b}):
        for key in ("iteration_mean_ps", "iteration_max_ps", "duration_ps", "free_communication_ps"):
            yield Row("jobs", name, key, "ps", _get(job_a, key), _get(job_b, key))
        for part in ("compute", "communication", "exposed", "idle"):
            spread_a, spread_b = _get(job_a, part), _get(job_b, part)
            yield Row(
                "jobs", name, f"{part}.mean_ps", "ps", _get(spread_a, "mean_ps"), _get(spread_b, "mean_ps")
            )
            yield Row(
                "jobs", name, f"{part}.share", "share", _get(spread_a, "share"), _get(spread_b, "share")
            )


def _collective_rows(a: Sequence[CollectiveSummary], b: Sequence[CollectiveSummary]) -> Iterator[Row]:
    # The same collective carried by another algorithm is what people compare, so the algorithm tells two
    # rows apart only where one run uses several for it.
    uses = [Counter(_kind(c) for c in rows) for rows in (a, b)]
    several = {kind for counter in uses for kind, count in counter.items() if count > 1}

    def named(rows: Sequence[CollectiveSummary]) -> dict[_Key, CollectiveSummary]:
        return {(*_kind(c), c.algorithm if _kind(c) in several else ""): c for c in rows}

    keys: tuple[tuple[str, Unit], ...] = (
        ("count", "count"),
        ("mean_ps", "ps"),
        ("max_ps", "ps"),
        ("wait_mean_ps", "ps"),
        ("busbw_bps", "bps"),
    )
    for (job, kind, size, group, algorithm), (one, other) in _matched(named(a), named(b)):
        item = f"{job}: {kind} {algorithm}".rstrip() + f", {format_size(size)} on {group} ranks"
        for key, unit in keys:
            yield Row("collectives", item, key, unit, _get(one, key), _get(other, key))


def _kind(c: CollectiveSummary) -> tuple[str, str, int, int]:
    return c.job, c.collective, c.size_bytes, c.group_size


def _link_rows(a: Summary, b: Summary) -> Iterator[Row]:
    totals_a, totals_b = a.link_totals, b.link_totals
    yield Row("links", "all", "used", "count", totals_a.used, totals_b.used)
    yield Row("links", "all", "sent_bytes", "bytes", totals_a.sent_bytes, totals_b.sent_bytes)
    mean_a, mean_b = totals_a.mean_utilisation, totals_b.mean_utilisation
    yield Row("links", "all", "mean_utilisation", "share", mean_a, mean_b)
    keys: tuple[tuple[str, Unit], ...] = (("sent_bytes", "bytes"), ("utilisation", "share"))
    # A summary holds the busiest links only: where one is not among them, it isn't unused.
    for name, (one, other) in _matched({k.name: k for k in a.links}, {k.name: k for k in b.links}):
        for key, unit in keys:
            if one is not None and other is not None:
                yield Row("links", name, key, unit, _get(one, key), _get(other, key))


def _matched(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> list[tuple[Any, tuple[Any, Any]]]:
    """Both sides by name, in an order that doesn't depend on which run is which."""
    shared, alone = sorted(a.keys() & b.keys()), sorted(a.keys() ^ b.keys())
    return [(name, (a.get(name), b.get(name))) for name in [*shared, *alone]]


def _get(thing: Any, key: str) -> Any:
    return None if thing is None else getattr(thing, key)


def _settings(a: Any, b: Any) -> Iterator[Setting]:
    flat_a, flat_b = dict(_flat(a, "")), dict(_flat(b, ""))
    for key in sorted(flat_a.keys() | flat_b.keys()):
        if flat_a.get(key) != flat_b.get(key) or (key in flat_a) != (key in flat_b):
            yield Setting(key, flat_a.get(key), flat_b.get(key))


def _flat(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings and lists with dotted keys: ``jobs.0.workload.kind``."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from _flat(inner, f"{key}.{i}" if key else str(i))
    else:
        yield key, value


def _plain(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= 48 else text[:45] + "..."


def _cells(row: Row) -> list[str]:
    a, b = _value(row.a, row.unit), _value(row.b, row.unit)
    change = "-" if row.difference is None else _signed(row.difference, row.unit)
    ratio = "-" if row.ratio is None else f"{row.ratio:.4f}"
    return [f"  {row.item}", _spoken(row.key), a, b, change, ratio]


def _spoken(key: str) -> str:
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
