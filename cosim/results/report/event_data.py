"""Events of a run as a report shows them: from when until when, on which links, and what iterations took.

An iteration that an event touched is held against those that events touched least. Where none was left
alone, that is a lower bound of what the event cost; the page says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cosim.errors import CosimError
from cosim.faults.event import Event
from cosim.faults.links import parts_of
from cosim.faults.occasions import occasions
from cosim.faults.ranks import ranks_of
from cosim.results.intervals import covered, union
from cosim.results.report.source import I64, ReportSource
from cosim.topology.graph import I32, Paths, Topology
from cosim.units import format_rate

F64 = NDArray[np.float64]
MOST_EVENTS = 12
MOST_SPANS = 200
MOST_PARTS = 1_000
_ALIKE = 1e-9


def event_data(source: ReportSource) -> list[dict[str, Any]]:
    """The scenario's events within the run, the first :data:`MOST_EVENTS`: ``name``, ``what``, ``spans`` in
    ps, ``links`` by number, and of each job whose iterations it touched what these took (``jobs``).

    Ranks that fail (``fails``) are not among them: they belong to a whole training, not to the run.
    """
    found = []
    for number, event in _events(source):
        try:
            parts, links = _parts(source, event)
        except CosimError:  # of another release: what it is of is not there any more
            continue
        spans = _spans(event, source, number, parts)
        if len(spans):
            found.append((event, spans, links))
    found = found[:MOST_EVENTS]
    ends = [source.iterations(job) for job in range(len(source.summary.jobs))]
    if not found:
        return []
    touched = [np.array([covered(spans, end) for _, spans, _ in found]) for end in ends]
    return [
        {
            "name": _name(event),
            "what": _what(event),
            "spans": spans[:MOST_SPANS].tolist(),
            "links": links if event.down else [],
            "jobs": [one for job in range(len(ends)) if (one := _cost(job, ends[job], touched[job], k))],
        }
        for k, (event, spans, links) in enumerate(found)
    ]


def _events(source: ReportSource) -> Iterator[tuple[int, Event]]:
    settings = source.settings if isinstance(source.settings, dict) else {}
    for number, said in enumerate(settings.get("events") or ()):
        try:
            event = Event.model_validate(said)
        except ValidationError:  # of another release
            continue
        if not event.fails:
            yield number, event


def _parts(source: ReportSource, event: Event) -> tuple[list[int], list[int]]:
    """What the event happens to, each drawn by itself, as numbers; and the links among it."""
    if event.rank is not None:
        names = [job.name for job in source.summary.jobs]
        job = source.summary.jobs[names.index(event.job) if event.job in names else 0]
        return ranks_of(event, job.num_ranks)[:MOST_PARTS], []
    parts = parts_of(event, _topology(source))
    return [*range(min(len(parts), MOST_PARTS))], [link for part in parts for link in part]


def _spans(event: Event, source: ReportSource, number: int, parts: list[int]) -> I64:
    """When it happens to any of these: int64[n, 2], apart from each other."""
    end_ps, seed = source.summary.end_ps, source.summary.seed
    drawn = parts if event.mtbf is not None else parts[:1]
    pairs = [
        pair for part in drawn for pair in islice(occasions(event, seed, number, part, end_ps), MOST_SPANS)
    ]
    both: I64 = np.array(pairs, np.int64).reshape(-1, 2)
    return union(both[:, 0], both[:, 1])


def _cost(job: int, ends: I64, touched: F64, k: int) -> dict[str, Any] | None:
    """Iterations that event ``k`` touched most, beside those that all events touched least."""
    if len(ends) < 3 or not touched[k].any():
        return None
    times = np.diff(ends)
    most, all_of_them = touched[k].max(), touched.sum(axis=0)
    hit = np.flatnonzero(touched[k] >= most - _ALIKE)
    base = np.flatnonzero(all_of_them <= all_of_them.min() + _ALIKE)
    if len(np.intersect1d(hit, base)):
        return None
    return {
        "job": job,
        "hit": hit.tolist()[:3],
        "hits": len(hit),
        "hit_ps": round(float(times[hit].mean())),
        "hit_share": float(most),
        "base": base.tolist()[:3],
        "bases": len(base),
        "base_ps": round(float(times[base].mean())),
        "base_share": float(all_of_them[base[0]]),
    }


def _name(event: Event) -> str:
    if event.node:
        return event.node
    if event.rank is not None:
        return f"{event.job} rank {event.rank}".strip() if event.rank != "*" else f"{event.job} ranks".strip()
    return str(event.link) if isinstance(event.link, str) else f"link {event.link}"


def _what(event: Event) -> str:
    if event.down:
        return "down"
    return f"at {format_rate(event.rate)}" if event.rate else f"{event.slow:g} x as slow"


def _topology(source: ReportSource) -> Topology:
    """Nodes and links, to find an event's by name."""
    found = source.columns
    names = tuple(found["node_name"].tolist())
    src, dst, rate, latency = (found[f"link_{name}"] for name in ("src", "dst", "rate_bps", "latency_ps"))
    size = source.summary.num_endpoints
    return Topology(source.summary.topology, size, names, src, dst, rate, latency, _NoPaths())


class _NoPaths(Paths):
    """No paths: the run is over, and nothing goes anywhere."""

    @property
    def name(self) -> str:
        return "none"

    def paths(self, topology: Topology, src: I32, dst: I32, channel: I32) -> tuple[I64, I32]:
        raise NotImplementedError
