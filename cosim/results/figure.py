"""Pictures of trials and runs: matplotlib, imported when one is drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location
from cosim.results.measures import MEASURES
from cosim.results.trials import Trials

COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#999933", "#777777", "#000000")
"""Okabe and Ito's, which people with any colour vision tell apart, with olive for yellow."""
MARKERS = "osD^"
"""The next after each round of colours."""

_SPLIT_ROWS = 2
_LOG_FROM = 3.0
_LETTERS = 13
"""Of a title, to an inch."""
_TICKS = (1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100, 200, 500, 1000)


def canvas_of(heights: Sequence[float], columns: int, width: float) -> tuple[Any, list[list[Any]]]:
    """A figure without a display, and its panels row by row; a third row is one panel over all columns.

    Raises
    ------
    InputError
        matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(
            "figures need matplotlib, which is not installed", hint="pip install 'cosim-net[plot]'"
        ) from error
    figure = Figure(figsize=(width, sum(heights) + 0.6), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=list(heights))
    panels = []
    for row in range(len(heights)):
        whole = row >= _SPLIT_ROWS
        cells = [grid[row, :]] if whole else [grid[row, column] for column in range(columns)]
        panels.append([figure.add_subplot(cell) for cell in cells])
    for panel in (one for row in panels for one in row):
        panel.spines[["top", "right"]].set_visible(False)
    return figure, panels


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure as the suffix says; the same bytes for the same figure.

    Raises
    ------
    InputError
        The file can't be written.
    """
    import matplotlib

    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    try:
        with matplotlib.rc_context({"svg.hashsalt": "cosim"}):
            figure.savefig(path, dpi=150, metadata=metadata)
    except OSError as error:
        raise InputError(f"can't be written: {error}", location=Location(str(path))) from error
    return path


def draw_trials(trials: Trials, path: Path) -> Path:
    """A panel for each measure: bands are columns of the table, dots the first axis' choices with their
    intervals; times of several columns over the best of their column, seed by seed.

    Raises
    ------
    InputError
        As :func:`canvas_of` and :func:`save_figure`.
    """
    first, labels = trials.axes[0]
    columns = trials.columns
    width = min(max(6.0, 1.4 + 0.13 * len(columns) * (len(labels) + 2)), 20.0)
    figure, rows = canvas_of([3.2] * len(trials.measures), 1, width)
    panels = [row[0] for row in rows]
    for panel, measure in zip(panels, trials.measures, strict=True):
        one, relative = MEASURES[measure], _relative(trials, measure)
        ends: list[float] = []
        for k, label in enumerate(labels):
            of = trials.of_best if relative else trials.cell
            cells = [of((label, *column), measure) for column in columns]
            scale = 1.0 if relative else 1 / one.per
            at = [c + (k - (len(labels) - 1) / 2) * 0.84 / len(labels) for c in range(len(columns))]
            ends += [scale * end for cell in cells if cell.count for end in cell.interval]
            panel.errorbar(
                at,
                [scale * cell.mean for cell in cells],
                yerr=[scale * (cell.half_width or 0.0) for cell in cells],
                fmt=MARKERS[k // len(COLORS) % len(MARKERS)],
                color=COLORS[k % len(COLORS)],
                label=label,
                ms=5,
                elinewidth=1.2,
                capsize=2,
            )
        for c in range(0, len(columns), 2):
            panel.axvspan(c - 0.5, c + 0.5, color="#f2f2f2", lw=0, zorder=0)
        panel.set_xlim(-0.5, len(columns) - 0.5)
        panel.set_xticks(range(len(columns)), ["\n".join(column) or trials.name for column in columns])
        panel.tick_params(axis="x", length=0)
        if relative:
            panel.axhline(1.0, color="#888888", lw=0.8, zorder=1)
            panel.set_ylabel(f"{measure} / best of its column")
            _ratios(panel, min(ends, default=1.0), max(ends, default=1.0))
        else:
            panel.set_ylabel(f"{measure} ({one.symbol})" if one.symbol else measure)
            panel.set_ylim(bottom=0)
        several = len({trial.seed for trial in trials.trials}) > 1
        how = (
            ", seed by seed over the best of its column; bars: 95\u00a0%" if relative else "; bars: 95\u00a0%"
        )
        title = textwrap.fill(one.text + how * several, int(_LETTERS * width))
        panel.set_title(title, fontsize=9, loc="left")
    handles, names = panels[0].get_legend_handles_labels()
    room = max(1, int(width / (0.55 + 0.085 * max(map(len, names)))))
    figure.legend(
        handles, names, title=first, loc="outside upper center", ncols=min(len(names), room), frameon=False
    )
    return save_figure(figure, path)


def _ratios(panel: Any, low: float, top: float) -> None:
    """An axis of ratios, in steps that a person reads as factors."""
    if top > _LOG_FROM:
        panel.set_yscale("log")
        panel.set_yticks([tick for tick in _TICKS if tick <= 1.2 * top])
        panel.yaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_ylim(min(0.85, max(0.96 * low, 0.4)), 1.1 * top)
    else:
        room = 0.05 * (top - min(low, 1.0)) + 0.005
        panel.set_ylim(min(low, 1.0) - room, top + room)


def _relative(trials: Trials, measure: str) -> bool:
    """Times of several columns: each has a magnitude of its own, and choices are compared within it."""
    several = len(trials.columns) > 1 and len(trials.axes[0][1]) > 1
    return (
        several
        and MEASURES[measure].unit == "time"
        and all(
            trials.of_best((trials.order(column, measure) or ("",))[:1] + column, measure).count
            for column in trials.columns
        )
    )
