"""What differs between two runs: settings, answers, times, links.

Comparing is a mirror: ``compare(b, a)`` has the same rows as ``compare(a, b)`` with both sides exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from cosim.results.certainty import faster
from cosim.results.collectives import CollectiveSummary
from cosim.results.differences import Explanation, RunFacts, differences
from cosim.results.path_parts import path_parts
from cosim.results.render.page import Page
from cosim.results.store import run_columns
from cosim.results.stored_run import StoredRun, load_run
from cosim.results.study import StudyResult
from cosim.results.summary import JobSummary, Summary
from cosim.results.table import Array
from cosim.units import format_size

Unit = Literal["ps", "bytes", "bps", "share", "count", "seconds"]
Number = int | float

_Key = tuple[str, str, int, int, str]
_Told = Callable[[Callable[[Summary], Number | None]], tuple[Number | None, Number | None, bool]]
"""A quantity of both runs, None of one that doesn't tell of it; whether both tell."""


@dataclass(frozen=True)
class Row:
    """One quantity in both runs; None where a run doesn't have it. ``key`` is its name in the summary.

    ``told`` is False where a run doesn't tell of such things at all.
    """

    section: str
    item: str
    key: str
    unit: Unit
    a: Number | None
    b: Number | None
    told: bool = True

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
class Comparison(StudyResult):
    """Two runs side by side, as :func:`cosim.compare` returns them; prints as the page of ``cosim compare``.

    Attributes
    ----------
    name_a, name_b
        What the runs are called.
    same_digest
        Every message and every operation happened at the same picosecond in both; None where a run doesn't
        tell of messages, so that its digest is another's (ASTRA-sim's).
    settings
        Those that differ; None where a run has no scenario to compare.
    rows
        Every quantity of both.
    faster
        Jobs that a compute model timed in both: the probability that a's iteration takes less time, by
        the compute models' errors.
    said
        The same in words, one sentence first.
    doubtful
        ``a`` or ``b``, and what can make it wrong by more than its interval.

    Examples
    --------
    >>> import cosim
    >>> run = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> cosim.compare(run, run).different
    ()
    """

    name_a: str
    name_b: str
    same_digest: bool | None
    settings: tuple[Setting, ...] | None
    rows: tuple[Row, ...]
    faster: tuple[tuple[str, float], ...] = ()
    said: Explanation | None = None
    doubtful: tuple[tuple[str, str], ...] = ()

    @property
    def different(self) -> tuple[Row, ...]:
        """Rows whose sides differ, of what both runs tell."""
        return tuple(row for row in self.rows if row.told and row.a != row.b)

    @property
    def untold(self) -> tuple[Row, ...]:
        """Rows of what one run doesn't tell."""
        return tuple(row for row in self.rows if not row.told)

    def to_json(self) -> dict[str, Any]:
        """Plain values; every row with its difference and ratio."""
        data = asdict(self)
        for row, plain in zip(self.rows, data["rows"], strict=True):
            plain |= {"difference": row.difference, "ratio": row.ratio}
        return data

    def __repr__(self) -> str:
        return f"<Comparison of {self.name_a} with {self.name_b}: {len(self.different)} rows differ>"

    def page(self) -> Page:
        """The sections of the page, for text and for HTML."""
        from cosim.results.render.comparison_page import comparison_page

        return comparison_page(self)


class ComparableRun(Protocol):
    """What a run is to :func:`compare`: :class:`cosim.Run`, or what :func:`cosim.load_run` reads."""

    @property
    def summary(self) -> Summary:
        """What came of it."""

    @property
    def settings(self) -> Any:
        """The scenario as plain values; None where it isn't known."""


def compare(a: Summary | ComparableRun | str | Path, b: Summary | ComparableRun | str | Path) -> Comparison:
    """What differs between two runs: settings first, then results.

    Jobs are matched by name, collectives by job, kind, algorithm, size and group, links by name.

    Parameters
    ----------
    a, b
        Runs, folders that ``out`` wrote, or summaries; settings are compared where both have some.

    Returns
    -------
    Comparison
        Prints as the page of ``cosim compare``; ``rows`` have every quantity, ``different`` those that
        differ.

    Raises
    ------
    InputError
        A folder that holds no run.

    Examples
    --------
    >>> import cosim
    >>> text = '''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... '''
    >>> slow, fast = cosim.run(text), cosim.run(text, {"topology.rate": "160Gbps"})
    >>> found = cosim.compare(slow, fast)
    >>> found.settings
    (Setting(key='topology.rate', a='80Gbps', b='160Gbps'),)
    >>> [row.ratio for row in found.different if row.key == "iteration_mean_ps"]
    [0.5]
    """
    a, b = (load_run(one) if isinstance(one, str | Path) else one for one in (a, b))
    summary_a, settings_a = _parts(a)
    summary_b, settings_b = _parts(b)
    both = settings_a is not None and settings_b is not None
    return Comparison(
        name_a=_title(a),
        name_b=_title(b),
        same_digest=(
            summary_a.digest == summary_b.digest if _tells(summary_a) and _tells(summary_b) else None
        ),
        settings=tuple(_settings(settings_a, settings_b)) if both else None,
        rows=tuple(_rows(summary_a, summary_b)),
        faster=tuple(_faster(summary_a.jobs, summary_b.jobs)),
        said=differences(_told(a), _told(b)),
        doubtful=tuple(
            (name, str(doubt)) for name, one in (("a", summary_a), ("b", summary_b)) for doubt in one.doubts
        ),
    )


def _parts(run: Summary | ComparableRun) -> tuple[Summary, Any]:
    return (run, None) if isinstance(run, Summary) else (run.summary, run.settings)


def _told(run: Summary | ComparableRun) -> RunFacts:
    """What a run tells in words; of a summary alone the busiest links, and no path."""
    summary = _parts(run)[0]
    columns = _columns(run)
    if columns is None:
        links = {link.name: link.utilisation for link in summary.links}
        return RunFacts(summary, {}, links, {})
    paths = {job.name: path_parts(columns, number) for number, job in enumerate(summary.jobs)}
    nodes, src, dst = columns["node_name"].tolist(), columns["link_src"], columns["link_dst"]
    names = [f"{nodes[a]} -> {nodes[b]}" for a, b in zip(src.tolist(), dst.tolist(), strict=True)]
    busy = columns["link_busy_ps"].sum(axis=0) / max(summary.end_ps, 1)
    shared = {names[link]: users for link, users in _shared(columns, summary).items()}
    return RunFacts(summary, paths, dict(zip(names, busy.tolist(), strict=True)), shared)


def _columns(run: Summary | ComparableRun) -> Mapping[str, Array] | None:
    if isinstance(run, StoredRun):
        return run.columns
    records = getattr(run, "records", None)
    return None if records is None else run_columns(records)


def _shared(columns: Mapping[str, Array], summary: Summary) -> dict[int, list[str]]:
    """Links that several jobs used, with those."""
    users: dict[int, set[int]] = {}
    for link, job in zip(columns["use_link"].tolist(), columns["use_job"].tolist(), strict=True):
        if job >= 0:
            users.setdefault(link, set()).add(job)
    return {
        link: [summary.jobs[job].name for job in sorted(mine)]
        for link, mine in users.items()
        if len(mine) > 1
    }


def _title(run: Summary | ComparableRun) -> str:
    summary = _parts(run)[0]
    text = f"{summary.name or 'run'} on {summary.topology}, network {summary.network}"
    return f"{run.directory}: {text}" if isinstance(run, StoredRun) else text


def _tells(summary: Summary) -> bool:
    """Whether a run tells of messages and links: another simulator's tells of operations alone."""
    return summary.num_messages > 0 or not summary.collectives


def _faster(a: Sequence[JobSummary], b: Sequence[JobSummary]) -> Iterator[tuple[str, float]]:
    """The probability for jobs of one name; with the same common error they are on the same kind of GPU."""
    others = {job.name: job for job in b}
    for job in a:
        other = others.get(job.name)
        if other is None or job.error is None or other.error is None:
            continue
        if job.iteration_mean_ps and other.iteration_mean_ps:
            alike = job.error == other.error
            yield (
                job.name,
                faster(job.iteration_mean_ps, job.error, other.iteration_mean_ps, other.error, alike=alike),
            )


def _rows(a: Summary, b: Summary) -> Iterator[Row]:
    def told(get: Callable[[Summary], Number | None]) -> tuple[Number | None, Number | None, bool]:
        one, other = (get(summary) if _tells(summary) else None for summary in (a, b))
        return one, other, _tells(a) and _tells(b)

    yield Row("run", "simulated time", "end_ps", "ps", a.end_ps, b.end_ps)
    yield Row("run", "messages", "num_messages", "count", *told(lambda s: s.num_messages))
    yield Row("run", "traffic", "traffic.total_bytes", "bytes", *told(lambda s: s.traffic.total_bytes))
    for key in ("p50_ps", "p99_ps", "max_ps"):
        item = f"message time {key.removesuffix('_ps')}"
        yield Row("run", item, f"fct.{key}", "ps", *told(partial(_fct, key=key)))
    yield from _job_rows(a.jobs, b.jobs)
    yield from _rank_rows(a.jobs, b.jobs)
    yield from _collective_rows(a.collectives, b.collectives)
    yield from _link_rows(a, b, told)


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


def _rank_rows(a: Sequence[JobSummary], b: Sequence[JobSummary]) -> Iterator[Row]:
    """When each rank ended: all that some simulators say."""
    for name, (job_a, job_b) in _matched({j.name: j for j in a}, {j.name: j for j in b}):
        if job_a is None or job_b is None or len(job_a.finish_ps) != len(job_b.finish_ps):
            continue
        for rank, (one, other) in enumerate(zip(job_a.finish_ps, job_b.finish_ps, strict=True)):
            yield Row("ranks", f"{name}: rank {rank}", "finish_ps", "ps", one, other)


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


def _link_rows(a: Summary, b: Summary, told: _Told) -> Iterator[Row]:
    yield Row("links", "all", "used", "count", *told(lambda s: s.link_totals.used))
    yield Row("links", "all", "sent_bytes", "bytes", *told(lambda s: s.link_totals.sent_bytes))
    yield Row("links", "all", "mean_utilisation", "share", *told(lambda s: s.link_totals.mean_utilisation))
    keys: tuple[tuple[str, Unit], ...] = (("sent_bytes", "bytes"), ("utilisation", "share"))
    # A summary holds the busiest links only: where one is not among them, it isn't unused.
    for name, (one, other) in _matched({k.name: k for k in a.links}, {k.name: k for k in b.links}):
        for key, unit in keys:
            if one is not None and other is not None and _tells(a) and _tells(b):
                yield Row("links", name, key, unit, _get(one, key), _get(other, key))


def _matched(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> list[tuple[Any, tuple[Any, Any]]]:
    """Both sides by name, in an order that doesn't depend on which run is which."""
    shared, alone = sorted(a.keys() & b.keys()), sorted(a.keys() ^ b.keys())
    return [(name, (a.get(name), b.get(name))) for name in [*shared, *alone]]


def _fct(summary: Summary, *, key: str) -> int | None:
    value: int | None = _get(summary.fct, key)
    return value


def _get(thing: Any, key: str) -> Any:
    return None if thing is None else getattr(thing, key)


def _settings(a: Any, b: Any) -> Iterator[Setting]:
    flat_a, flat_b = dict(_flat(a, "")), dict(_flat(b, ""))
    for key in sorted((flat_a.keys() | flat_b.keys()) - {"description"}):
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
