"""Pictures of trials and runs: matplotlib, imported when one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cosim.errors import InputError, Location
from cosim.results.measures import MEASURES
from cosim.results.sharing import Sharing
from cosim.results.trials import Trials

COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#666666", "#000000")
"""Okabe and Ito's, which people with any colour vision tell apart."""


def canvas(rows: int, width: float, height: float) -> tuple[Any, list[Any]]:
    """A figure of ``rows`` panels under each other, without a display.

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
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, 1, squeeze=False)
    for panel in panels[:, 0]:
        panel.spines[["top", "right"]].set_visible(False)
    return figure, list(panels[:, 0])


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
    """A panel for each measure: groups are columns of the table, bars the first axis' choices.

    Raises
    ------
    InputError
        As :func:`canvas` and :func:`save_figure`.
    """
    first, labels = trials.axes[0]
    columns = trials.columns
    width = max(6.0, 1.2 + 0.32 * len(columns) * (len(labels) + 1))
    figure, panels = canvas(len(trials.measures), width, 3.2 * len(trials.measures) + 0.6)
    for panel, measure in zip(panels, trials.measures, strict=True):
        scale = 1e-9 if MEASURES[measure].unit == "time" else 1.0
        for k, label in enumerate(labels):
            cells = [trials.cell((label, *column), measure) for column in columns]
            at = [c + (k - (len(labels) - 1) / 2) * 0.8 / len(labels) for c in range(len(columns))]
            panel.bar(
                at,
                [scale * cell.mean for cell in cells],
                0.8 / len(labels),
                yerr=[scale * (cell.half_width or 0.0) for cell in cells],
                color=COLORS[k % len(COLORS)],
                label=label,
                error_kw={"elinewidth": 1, "capsize": 2},
            )
        panel.set_xticks(range(len(columns)), ["\n".join(column) or trials.name for column in columns])
        panel.set_ylabel(f"{measure} (ms)" if MEASURES[measure].unit == "time" else measure)
        panel.set_title(MEASURES[measure].text, fontsize=9, loc="left")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, names, title=first, loc="outside upper center", ncols=min(len(names), 6), frameon=False
    )
    return save_figure(figure, path)


def draw_sharing(shared: Sharing, title: str, path: Path) -> Path:
    """Above, when each job communicates; below, who has how much of the link.

    Raises
    ------
    InputError
        As :func:`canvas` and :func:`save_figure`.
    """
    count = len(shared.jobs)
    figure, (above, below) = canvas(2, 11.0, 2.6 + 0.35 * count + 2.4)
    left = shared.edges_ps[:-1] * 1e-9
    right = shared.edges_ps[1:] * 1e-9
    for j, name in enumerate(shared.jobs):
        color = COLORS[j % len(COLORS)]
        above.fill_between(
            left,
            count - 1 - j + 0.08,
            count - 1 - j + 0.08 + 0.84 * shared.active[j],
            step="post",
            color=color,
            lw=0,
        )
        above.text(
            -0.008, count - 1 - j + 0.5, name, transform=above.get_yaxis_transform(), ha="right", va="center"
        )
    above.fill_between(left, -0.45, -0.45 + 0.35 * shared.contended, step="post", color="#444444", lw=0)
    above.text(
        -0.008, -0.27, "several", transform=above.get_yaxis_transform(), ha="right", va="center", fontsize=8
    )
    above.set_yticks([])
    above.set_ylim(-0.5, count)
    early, late = shared.overlap(0.0, 0.25), shared.overlap(0.75, 1.0)
    above.set_title(
        f"{title}: who communicates when; several at once for {early:.0%} of it in the first quarter, "
        f"{late:.0%} in the last",
        fontsize=10,
        loc="left",
    )
    below.stackplot(
        (left + right) / 2,
        shared.rate_bps * 1e-9,
        colors=[COLORS[j % len(COLORS)] for j in range(count)],
        labels=shared.jobs,
        lw=0,
    )
    below.axhline(shared.link_rate_bps * 1e-9, color="#444444", lw=0.8, ls="--")
    below.set_ylabel("Gbit/s")
    below.set_xlabel("ms")
    below.set_title(
        f"{shared.link_name}, by job (each message evenly from its start to its end)", fontsize=10, loc="left"
    )
    for panel in (above, below):
        panel.set_xlim(0, float(right[-1]))
    return save_figure(figure, path)
