"""The section of a run's page about its queue and its scheduler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cosim.results.measures import completions_ps
from cosim.results.render.page import Lines, PageTable, Section
from cosim.results.scheduling import ScheduledJob, Scheduling
from cosim.results.summary import Summary
from cosim.units import format_time

_MAX_ROWS = 8


def scheduling_section(summary: Summary) -> Section:
    """What was decided, and what it brought."""
    found = summary.scheduling
    assert found is not None
    parts: list[PageTable | Lines] = []
    if found.queue:
        parts.append(Lines([*_queue(summary, found)]))
    if found.scheduler:
        parts += _decision(summary, found)
    return Section(parts)


def _queue(summary: Summary, found: Scheduling) -> Iterator[str]:
    waited = np.array([*found.waited_ps.values()] or [0])
    done = np.array(completions_ps(summary) or [0])
    yield (
        f"queue {found.queue}: {int((waited > 0).sum())} of {len(found.arrived_ps)} jobs waited, "
        f"mean {format_time(round(waited.mean()))}, at most {format_time(int(waited.max()))}"
    )
    mean, late = (format_time(round(float(one))) for one in (done.mean(), np.percentile(done, 99)))
    yield f"  from arrival to end: mean {mean}, p99 {late}"


def _decision(summary: Summary, found: Scheduling) -> Iterator[PageTable | Lines]:
    heads = ["period", "communicates", *_heads(found), "iteration"]
    rows = [[f"scheduler {found.scheduler}", *heads, *(["without it"] if found.unscheduled_ps else [])]]
    means = {job.name: job.iteration_mean_ps for job in summary.jobs}
    for job in found.jobs[:_MAX_ROWS]:
        cells = [format_time(job.period_ps), f"{100 * job.communicates:.1f} %", *_told(job, found)]
        without = [_time(found.unscheduled_ps.get(job.name))] if found.unscheduled_ps else []
        rows.append([f"  {job.name}", *cells, _time(means.get(job.name)), *without])
    yield PageTable(rows)
    if len(found.jobs) > _MAX_ROWS:
        yield Lines([f"  ... and {len(found.jobs) - _MAX_ROWS} more jobs"])
    lines = []
    for link in found.links[:_MAX_ROWS]:
        alike = f" and {link.links - 1} alike" if link.links > 1 else ""
        lines.append(
            f"  {link.name}{alike} ({', '.join(link.jobs[:_MAX_ROWS])}): score {link.score:.4g}, "
            f"{_whether(link.score, link.unshifted)}; perimeter {format_time(link.perimeter_ps)}"
        )
    if len(found.links) > _MAX_ROWS:
        lines.append(f"  ... and {len(found.links) - _MAX_ROWS} more links")
    lines += [f"  {note}" for note in found.notes]
    if found.decisions > 1:
        lines.append(f"  as decided at {format_time(found.time_ps)}, one of {found.decisions} decisions")
    if lines:
        yield Lines(lines)


def _heads(found: Scheduling) -> list[str]:
    return [head for head, is_said in _SAID.items() if any(map(is_said, found.jobs))]


def _told(job: ScheduledJob, found: Scheduling) -> list[str]:
    shown = {
        "shift": _time(job.shift_ps),
        "intensity": "-" if job.intensity is None else f"{job.intensity:.3g}",
        "priority": "-" if job.priority is None else str(job.priority),
        "paths": str(job.paths),
    }
    return [shown[head] for head in _heads(found)]


_SAID = {
    "shift": lambda job: job.shift_ps is not None,
    "intensity": lambda job: job.intensity is not None,
    "priority": lambda job: job.priority is not None,
    "paths": lambda job: job.paths > 0,
}


def _whether(score: float, unshifted: float) -> str:
    if score >= 1 - 1e-9:
        return "nobody waits" if unshifted < 1 - 1e-9 else "nobody would wait unshifted either"
    if score <= unshifted + 1e-9:
        return "no shift helps"
    return f"{unshifted:.4g} unshifted"


def _time(ps: float | None) -> str:
    return "-" if ps is None else format_time(round(ps))
