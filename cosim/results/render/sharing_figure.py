"""The picture of jobs that share a fabric: who communicates when, who has the link, how iterations went.

A long run is shown twice: its beginning and its end side by side, so that single iterations can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cosim.engine.records import Records
from cosim.results.intervals import Overlap
from cosim.results.render.figure import COLORS, new_figure, save_figure
from cosim.results.sharing import Sharing, sharing
from cosim.results.summary import iteration_ends
from cosim.units import PS_PER_MS, PS_PER_S, PS_PER_US

_LONG = 24
"""A run in which a job has more iterations shows its beginning and its end."""
_SHOWN = 8
"""Iterations of the job with most, in each of them."""
_MAX_JOBS = 24
_LEAST_SPAN = 0.1
"""Half of the least range of iteration times, of their middle."""


def draw_sharing(
    records: Records,
    title: str,
    path: Path,
    overlap: Overlap | None = None,
    alone: Mapping[str, float] | None = None,
) -> Path:
    """Draw a run that recorded its messages.

    ``overlap``, the summary's, is said in the title; ``alone``, the mean iteration of jobs by themselves in
    picoseconds, is drawn beside their iteration times.

    Raises
    ------
    InputError
        The run has no messages, matplotlib is not installed, or the file can't be written.
    """
    spans = _time_spans(records)
    parts = [sharing(records, since_ps=a, until_ps=b) for a, b in spans]
    whole = parts[0] if len(parts) == 1 else sharing(records)
    jobs = range(min(len(whole.jobs), _MAX_JOBS))
    with_times = any(len(times) > 1 for times in whole.iteration_ps)
    heights = [0.5 + 0.3 * (len(jobs) + 1), 2.2, *([2.2] if with_times else [])]
    figure, panels = new_figure(heights, len(parts), 11.0)
    unit, scale = _unit(max(records.end_ps, 1))
    for column, part in enumerate(parts):
        _activity(panels[0][column], part, jobs, scale, named=column == 0)
        _link(panels[1][column], part, jobs, scale)
        panels[1][column].set_xlabel(unit)
        for panel in (panels[0][column], panels[1][column]):
            panel.set_xlim(part.edges_ps[0] * scale, part.edges_ps[-1] * scale)
    figure.suptitle(_title(title, len(parts), overlap), fontsize=10, ha="left", x=0.01)
    panels[0][0].set_title("who communicates when", fontsize=9, loc="left")
    panels[1][0].set_title(
        f"{whole.link_name}, by job (from messages' starts, ends and sizes)", fontsize=9, loc="left"
    )
    panels[1][0].set_ylabel("Gbit/s")
    if with_times:
        _times(panels[2][0], whole, jobs, unit, scale, alone or {})
    return save_figure(figure, path)


def _title(title: str, parts: int, overlap: Overlap | None) -> str:
    if parts > 1:
        title = f"{title} (left: the beginning of the run; right: its end)"
    if overlap is None:
        return title
    return (
        f"{title}\nof the time in which jobs communicate, several do at once: first quarter "
        f"{overlap.first_quarter:.0%}, last {overlap.last_quarter:.0%}"
    )


def _time_spans(records: Records) -> list[tuple[int, int]]:
    """The parts of the run that are shown, picoseconds."""
    ends = [iteration_ends(each) for each in records.iteration_end_ps]
    most = max(ends, key=len, default=np.zeros(0, np.int64))
    first = min((job.start_ps for job in records.jobs), default=0)
    if len(most) <= _LONG:
        return [(first, records.end_ps)]
    return [(first, int(most[_SHOWN - 1])), (int(most[-_SHOWN - 1]), records.end_ps)]


def _unit(span_ps: int) -> tuple[str, float]:
    for name, size in (("s", PS_PER_S), ("ms", PS_PER_MS)):
        if span_ps >= 2 * size:
            return name, 1 / size
    return "us", 1 / PS_PER_US


def _color(j: int) -> str:
    return COLORS[j % len(COLORS)]


def _activity(panel: Any, part: Sharing, jobs: Sequence[int], scale: float, *, named: bool) -> None:
    left = part.edges_ps * scale
    rows = [
        *((part.jobs[j], part.active[j], _color(j)) for j in jobs),
        ("several", part.contended, "#444444"),
    ]
    if len(jobs) < len(part.jobs):
        rows[-1] = (f"several of all {len(part.jobs)}", part.contended, "#444444")
    for row, (name, active, color) in enumerate(rows):
        bottom = len(rows) - 1 - row + 0.08
        panel.fill_between(
            left, bottom, bottom + 0.84 * np.append(active, active[-1]), step="post", color=color, lw=0
        )
        if named:
            panel.text(
                -0.01,
                bottom + 0.42,
                name,
                transform=panel.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=8,
            )
    panel.axhline(1, color="#cccccc", lw=0.6)
    panel.set_yticks([])
    panel.set_ylim(0, len(rows))
    panel.tick_params(axis="x", labelbottom=False)


def _link(panel: Any, part: Sharing, jobs: Sequence[int], scale: float) -> None:
    shares = part.rate_bps[: len(jobs)] * 1e-9
    left = np.repeat(part.edges_ps * scale, 2)[1:-1]
    panel.stackplot(left, np.repeat(shares, 2, axis=1), colors=[_color(j) for j in jobs], lw=0)
    panel.axhline(part.link_rate_bps * 1e-9, color="#444444", lw=0.8, ls="--")
    panel.set_ylim(0, part.link_rate_bps * 1.05e-9)


def _times(
    panel: Any, whole: Sharing, jobs: Sequence[int], unit: str, scale: float, alone: Mapping[str, float]
) -> None:
    drawn = [j for j in jobs if len(whole.iteration_ps[j]) > 1]
    shown = [float(time) for j in drawn for time in whole.iteration_ps[j]]
    shown += [alone[whole.jobs[j]] for j in drawn if whole.jobs[j] in alone]
    name, size = _unit(int(max(shown)))
    for j in drawn:
        times = whole.iteration_ps[j]
        if whole.jobs[j] in alone:
            panel.axhline(alone[whole.jobs[j]] * size, color=_color(j), lw=0.8, ls=":")
        ends = whole.iteration_end_ps[j] * scale
        panel.plot(ends, times * size, "o-", color=_color(j), ms=2.5, lw=1, label=whole.jobs[j])
    dotted = "; dotted: by itself" if any(whole.jobs[j] in alone for j in drawn) else ""
    panel.set_title(f"iteration times, where each ends{dotted}", fontsize=9, loc="left")
    panel.set_ylabel(name)
    panel.set_xlabel(f"{unit}, whole run")
    middle, half = (max(shown) + min(shown)) * size / 2, (max(shown) - min(shown)) * size / 2
    half = max(1.1 * half, _LEAST_SPAN * middle)  # what is nearly constant looks so
    panel.set_ylim(max(middle - half, 0), middle + half)
    panel.set_xlim(whole.edges_ps[0] * scale, whole.edges_ps[-1] * scale)
