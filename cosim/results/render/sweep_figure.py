"""The figure of a sweep: a panel for each measure."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from cosim.results.orders import letters
from cosim.results.quantities import QUANTITIES
from cosim.results.render.figure import COLORS, MARKERS, new_figure, save_figure
from cosim.results.sweep import SweepRun

_LOG_FROM = 3.0
"""Ratios above this are drawn on a logarithmic axis."""
_LETTERS_PER_INCH = 13
_TICKS = (1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100, 200, 500, 1000)


def draw_sweep(sweep: SweepRun, path: Path) -> Path:
    """Bands are columns of the table, dots the first axis' choices with their intervals; times of several
    columns are shown over the best of their column, seed by seed.

    Raises
    ------
    InputError
        matplotlib is not installed, or the file can't be written.
    """
    first, labels = sweep.axes[0]
    width = min(max(6.0, 1.4 + 0.13 * len(sweep.columns) * (len(labels) + 2)), 20.0)
    figure, rows = new_figure([3.2] * len(sweep.measures), 1, width)
    panels = [row[0] for row in rows]
    for panel, measure in zip(panels, sweep.measures, strict=True):
        draw_measure(panel, sweep, measure)
    handles, names = panels[0].get_legend_handles_labels()
    room = max(1, int(width / (0.55 + 0.085 * max(map(len, names)))))
    figure.legend(
        handles, names, title=first, loc="outside upper center", ncols=min(len(names), room), frameon=False
    )
    return save_figure(figure, path)


def draw_measure(panel: Any, sweep: SweepRun, measure: str) -> None:
    """Draw a panel: the columns of the table beside one another."""
    width = panel.figure.get_figwidth()
    one, columns, relative = QUANTITIES[measure], sweep.columns, _relative(sweep, measure)
    ends = _draw_choices(panel, sweep, measure, relative)
    for c in range(0, len(columns), 2):
        panel.axvspan(c - 0.5, c + 0.5, color="#f2f2f2", lw=0, zorder=0)
    panel.set_xlim(-0.5, len(columns) - 0.5)
    panel.set_xticks(range(len(columns)), ["\n".join(column) or sweep.name for column in columns])
    panel.tick_params(axis="x", length=0)
    if relative:
        panel.axhline(1.0, color="#888888", lw=0.8, zorder=1)
        panel.set_ylabel(f"{measure} / best of its column")
        _ratios(panel, min(ends, default=1.0), max(ends, default=1.0))
    else:
        panel.set_ylabel(f"{measure} ({one.unit.symbol})" if one.unit.symbol else measure)
        panel.set_ylim(bottom=0)
    several = len({trial.seed for trial in sweep.runs}) > 1
    how = ", seed by seed over the best of its column; bars: 95\u00a0%" if relative else "; bars: 95\u00a0%"
    if len(sweep.axes[0][1]) > 1:
        how += "; a letter in common: not told apart, seed by seed"
    title = textwrap.fill(one.text + how * several, int(_LETTERS_PER_INCH * width))
    panel.set_title(title, fontsize=9, loc="left")


def _draw_choices(panel: Any, sweep: SweepRun, measure: str, relative: bool) -> list[float]:
    """Dots and bars; the ends of all intervals, as drawn."""
    labels = sweep.axes[0][1]
    groups = [letters(sweep, column, measure) if len(labels) > 1 else {} for column in sweep.columns]
    of = sweep.of_best if relative else sweep.cell
    scale = 1.0 if relative else 1 / QUANTITIES[measure].unit.per
    ends: list[float] = []
    tight = panel.figure.get_figwidth() < 0.13 * len(sweep.columns) * (len(labels) + 2)
    about = {"fontsize": 5 if tight else 6.5, "rotation": 90 if tight else 0, "ha": "center"}
    for k, label in enumerate(labels):
        cells = [of((label, *column), measure) for column in sweep.columns]
        ends += [scale * end for cell in cells if cell.count for end in cell.interval]
        at = [c + (k - (len(labels) - 1) / 2) * 0.84 / len(labels) for c in range(len(cells))]
        for x, cell, group in zip(at, cells, groups, strict=True):
            if cell.count and group.get(label):
                place = (x, scale * cell.interval[1])
                panel.annotate(
                    group[label],
                    place,
                    (0, 4),
                    textcoords="offset points",
                    color="#555555",
                    annotation_clip=False,
                    **about,
                )
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
    return ends


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


def _relative(sweep: SweepRun, measure: str) -> bool:
    """Times of several columns: each has a magnitude of its own, and choices are compared within it."""
    several = len(sweep.columns) > 1 and len(sweep.axes[0][1]) > 1
    return (
        several
        and QUANTITIES[measure].kind == "time"
        and all(
            sweep.of_best((sweep.order(column, measure) or ("",))[:1] + column, measure).count
            for column in sweep.columns
        )
    )
