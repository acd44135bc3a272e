"""``cosim.plot``: runs, or a sweep, as axes of matplotlib."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cosim.errors import InputError, Location, install_extra
from cosim.files.folder import claimed, written_whole
from cosim.files.reads import keep_read
from cosim.files.text import write_text
from cosim.results.link_users import note_link_users
from cosim.results.plots.chart import LineChart
from cosim.results.plots.charts import CHARTS, MOST_LINES
from cosim.results.plots.operations import draw_operations, operations, operations_script
from cosim.results.render.figure import COLORS, save_figure
from cosim.results.report.source import ReportSource, RunInMemory, source_of
from cosim.results.report.sweep_data import TRIALS, load_sweep
from cosim.results.stored_run import StoredRun, load_run
from cosim.results.sweep import SweepRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Runs = RunInMemory | StoredRun | SweepRun | str | Path

Style = Literal["paper", "screen"]
WHAT = (*CHARTS, "timeline", "sweep")
WIDTHS = {1: 84 / 25.4, 2: 174 / 25.4}
"""Inches of a figure as wide as one column of a paper, or two."""
HEIGHT = 2.1
_SEED = re.compile(r"-seed\d+$")  # of a folder that a sweep kept
STYLES: dict[str, dict[str, Any]] = {
    "screen": {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False},
    "paper": {
        "font.size": 8,
        "axes.labelsize": 8,
        "legend.fontsize": 7,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "lines.linewidth": 1.1,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "pdf.fonttype": 42,
        "savefig.bbox": "standard",
    },
}
"""Settings of matplotlib; 42 embeds a PDF's fonts as TrueType, an SVG has letters as outlines."""


def plot(
    runs: Runs | Sequence[Runs],
    what: str = "cdf",
    *,
    style: Style = "paper",
    columns: Literal[1, 2] = 1,
    axes: Axes | None = None,
) -> Axes:
    """Draw what runs have in common on one axis.

    Parameters
    ----------
    runs
        Runs, folders of ``cosim run --out``, or a sweep; up to eight. Those that differ only by their seed
        are one line, their mean, within a band from the least to the most; so are the seeds of a sweep's
        folder that kept its runs (``keep_runs: true``).
    what
        ``cdf``, ``fct-by-size``, ``slowdown``, ``queue``, ``rate``, ``throughput`` (of the network),
        ``goodput`` (of a training with failures), ``timeline`` (of one run), ``sweep``.
    style
        ``paper``: small letters, fonts embedded, a column wide; ``screen``: matplotlib's own.
    columns
        How many columns of a paper the figure is wide: 84 mm, or 174 mm.
    axes
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        ``axes.figure`` saves itself.

    Raises
    ------
    InputError
        No such figure, nothing to draw it from (which says what to record), too many runs for one axis,
        or matplotlib isn't installed.

    Examples
    --------
    >>> import cosim
    >>> run = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> cosim.plot(run, "throughput").get_ylabel()
    'throughput (Gbps)'
    """
    drawn = Drawing(runs, what)
    with _styled(style):
        if axes is None:
            axes = _new_axes([drawn.high], columns)[0]
        drawn.draw(axes)
        drawn.legend(axes)
    return axes


class Drawing:
    """What is drawn, once, and its data.

    Parameters
    ----------
    runs, what
        As :func:`plot` takes them.
    groups
        What loads the runs, where several figures share them.
    """

    def __init__(
        self,
        runs: Runs | Sequence[Runs],
        what: str,
        groups: Callable[[], Mapping[str, list[ReportSource]]] | None = None,
    ) -> None:
        if what not in WHAT:
            raise InputError(f"there is no figure {what!r}", hint=f"there are {', '.join(WHAT)}")
        given = [runs] if isinstance(runs, str | Path) or not isinstance(runs, Sequence) else list(runs)
        if not given:
            raise InputError("there is nothing to plot: give a run, or a sweep")
        load = groups or (lambda: _groups(given))
        self.what = what
        self._sweep: SweepRun | None = None
        self._chart: LineChart | None = None
        self._rows: list[dict[str, Any]] = []
        if what == "sweep":
            self._sweep = _one_sweep(given)
        elif what == "timeline":
            if len(given) > 1:
                raise InputError("a timeline is of one run; cosim report A B shows two beside each other")
            [(_, [source])] = load().items()
            self._rows = operations(source)
        else:
            self._chart = CHARTS[what](load()).in_units()

    def draw(self, axes: Axes) -> None:
        """Draw it."""
        if self._sweep is not None:
            from cosim.results.render.sweep_figure import draw_measure

            draw_measure(axes, self._sweep, self._sweep.measures[0])
        elif self._chart is not None:
            _draw_chart(axes, self._chart)
        else:
            draw_operations(axes, self._rows)

    @property
    def high(self) -> float:
        """Inches: a timeline has room for each rank's name, a sweep for its letters."""
        ranks = len({row["rank"] for row in self._rows})
        return 3.2 if self._sweep is not None else max(HEIGHT, 0.6 + 0.13 * ranks)

    @property
    def entries(self) -> int:
        """How many lines the legend has."""
        return len(self._chart.lines) if self._chart is not None else 2

    def legend(self, axes: Axes) -> None:
        """Say which line is which, where there are several; beside nothing that is drawn."""
        handles, names = axes.get_legend_handles_labels()
        if len(names) > 1:
            axes.figure.legend(
                handles,
                names,
                loc="outside upper center",
                ncols=_beside(names, axes.figure.bbox.width / axes.figure.dpi),
            )

    def csv(self) -> str:
        """The data, units in the columns' names."""
        if self._sweep is not None:
            return self._sweep.figure_csv()
        if self._chart is not None:
            return self._chart.csv()
        head = list(self._rows[0]) if self._rows else []
        return "\n".join([",".join(head), *(",".join(map(_cell, row.values())) for row in self._rows), ""])

    def script(self, stem: str, columns: int = 1) -> str:
        """Ten lines that draw the same from the CSV; empty where that takes more."""
        size = (round(WIDTHS[columns], 2), round(self.high, 2))
        if self._rows:
            return operations_script(self._rows, stem, size, STYLES["paper"])
        if self._chart is None:
            return ""
        chart, (x, y) = self._chart, self._chart.columns
        colour = 'f"C{k // 2}", ls="--" if k % 2 else "-", marker="o", ms=2.5' if chart.pairs else 'f"C{k}"'
        return _SCRIPT.format(
            style=STYLES["paper"],
            colours=list(COLORS),
            csv=f"{stem}.csv",
            pdf=f"{stem}.pdf",
            size=size,
            columns=(x, y, f"{y}_low", f"{y}_high"),
            how=colour + ', drawstyle="steps-post"' * chart.steps,
            band=colour.partition(",")[0] + ', step="post"' * chart.steps,
            labels={"xlabel": chart.labels[0], "ylabel": chart.labels[1], **chart.scales},
            bottom="" if chart.y.log else "axes.set_ylim(bottom=0)\n",
            ncols=_beside([line.label for line in chart.lines], size[0]),
        )


_SCRIPT = """\
import csv, matplotlib.pyplot as plt
plt.rcParams.update({style})
plt.rcParams["axes.prop_cycle"] = plt.cycler(color={colours})
with open({csv!r}, encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
figure, axes = plt.subplots(figsize={size}, layout="constrained")
for k, name in enumerate(dict.fromkeys(row["line"] for row in rows)):
    x, y, low, high = ([float(row[key] or "nan") for row in rows if row["line"] == name] for key in {columns})
    axes.plot(x, y, label=name, color={how})
    axes.fill_between(x, low, high, alpha=0.2, lw=0, color={band})
axes.set(**{labels})
axes.minorticks_off()
{bottom}figure.legend(loc="outside upper center", ncols={ncols})
figure.savefig({pdf!r})
"""


def save_plots(
    runs: Sequence[Runs],
    what: Sequence[str],
    out: Path,
    *,
    style: str = "paper",
    columns: int = 1,
    overwrite: bool = False,
) -> list[Path]:
    """Write figures beside each other, their data and what draws them again.

    ``out`` ends in .pdf, .svg or .png; without an ending both PDF and SVG are written.

    Raises
    ------
    InputError
        As :func:`plot`; a file can't be written, or is there, cosim did not write it, and no ``overwrite``.
    """
    endings = [out.suffix] if out.suffix else [".pdf", ".svg"]
    if bad := [one for one in endings if one not in (".pdf", ".svg", ".png")]:
        raise InputError(
            f"a figure can't be written as {bad[0]}: .pdf, .svg or .png", location=Location(str(out))
        )
    groups = cache(lambda: _groups(runs))  # runs are read once, whatever is drawn of them
    drawings = [Drawing(runs, one, groups) for one in what]
    texts = {}
    for drawing in drawings:
        name = out.stem if len(drawings) == 1 else f"{out.stem}-{drawing.what}"
        texts[f"{name}.csv"] = drawing.csv()
        if script := drawing.script(name, columns if len(drawings) == 1 else 1):
            texts[f"{name}.py"] = script
    figures = [out.stem + ending for ending in endings]
    with _styled(style):
        panels = _new_axes([drawing.high for drawing in drawings], columns)
        for drawing, axes in zip(drawings, panels, strict=True):
            drawing.draw(axes)
        most = max(range(len(drawings)), key=lambda k: drawings[k].entries)
        drawings[most].legend(panels[most])
        names = [*figures, *texts]
        with claimed(out.parent, names, overwrite=overwrite) as target, written_whole(target, ()) as part:
            for name in names:
                keep_read(target / name)
            for name in figures:
                save_figure(panels[0].figure, part / name)
            for name, text in texts.items():
                write_text(part / name, text)
    return [target / name for name in names]


def _draw_chart(axes: Axes, chart: LineChart) -> None:
    step: Literal["post"] | None = "post" if chart.steps else None
    for k, line in enumerate(chart.lines):
        colour = COLORS[(k // 2 if chart.pairs else k) % len(COLORS)]
        dash = "--" if chart.pairs and k % 2 else "-"
        how = (
            {"drawstyle": "steps-post"} if chart.steps else {"marker": "o", "ms": 2.5} if chart.pairs else {}
        )
        axes.plot(line.x, line.y, color=colour, ls=dash, label=line.label, **how)
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, lw=0, step=step)
    x, y = chart.labels
    axes.set(xlabel=x, ylabel=y, **chart.scales)
    axes.minorticks_off()
    if not chart.y.log:
        axes.set_ylim(bottom=0)


def _beside(names: Sequence[str], width: float) -> int:
    """Columns of a legend: as many names as fit beside one another, in rows that are equally long."""
    most = max(1, int(width / (0.38 + 0.058 * max(map(len, names)))))
    return -(-len(names) // -(-len(names) // most))


def _new_axes(heights: Sequence[float], columns: int) -> list[Axes]:
    from matplotlib.figure import Figure

    high = max(heights) if columns == 2 else sum(heights)
    figure = Figure(figsize=(WIDTHS[columns], high), layout="constrained")
    shape = (1, len(heights)) if columns == 2 else (len(heights), 1)
    return [figure.add_subplot(*shape, k + 1) for k in range(len(heights))]


@contextmanager
def _styled(style: str) -> Iterator[None]:
    if style not in STYLES:
        raise InputError(f"there is no style {style!r}", hint=f"there are {', '.join(STYLES)}")
    try:
        import matplotlib
    except ImportError as error:
        raise InputError(
            "figures need matplotlib, which is not installed", hint=install_extra("plot")
        ) from error
    with matplotlib.rc_context(STYLES[style]):  # type: ignore[arg-type]  # its stub lists every key
        yield


def _one_sweep(given: Sequence[Any]) -> SweepRun:
    if len(given) == 1 and isinstance(given[0], SweepRun):
        return given[0]
    if len(given) == 1 and isinstance(given[0], str | Path):
        return load_sweep(Path(given[0]))
    raise InputError("a figure of a sweep is of one sweep: give its folder")


def _groups(given: Sequence[Any]) -> Mapping[str, list[ReportSource]]:
    """Runs by their line's label: those alike but for their seed are one line.

    Raises
    ------
    InputError
        They are more than :data:`MOST_LINES` lines, or a sweep kept no runs.
    """
    named: list[tuple[str, ReportSource]] = []
    for one in given:
        if isinstance(one, str | Path) and (Path(one) / TRIALS).is_file():
            named += _kept_runs(Path(one))
        elif isinstance(one, SweepRun):
            raise InputError("a sweep in memory keeps no runs", hint="plot its folder, or 'sweep'")
        else:
            run = load_run(Path(one)) if isinstance(one, str | Path) else one
            label = _SEED.sub("", Path(one).name) if isinstance(one, str | Path) else run.summary.name
            if not isinstance(run, StoredRun):
                note_link_users(run.records)
            named.append((label or "run", source_of(run)))
    groups: dict[str, list[ReportSource]] = {}
    keys: dict[str, str] = {}
    for label, source in named:
        settings = source.settings if isinstance(source.settings, dict) else None
        rest = (
            json.dumps({**settings, "seed": 0}, sort_keys=True, default=str) if settings else f"{len(keys)}"
        )
        groups.setdefault(keys.setdefault(rest, _free(label, groups)), []).append(source)
    if len(groups) > MOST_LINES:
        raise InputError(
            f"{len(groups)} runs on one axis, of which {MOST_LINES} can be told apart",
            hint="give fewer; a sweep's folder with --what sweep shows all of its choices",
        )
    return groups


def _free(label: str, taken: Mapping[str, Any]) -> str:
    """A label that no other line has."""
    number, name = 1, label
    while name in taken:
        number, name = number + 1, f"{label} ({number + 1})"
    return name


def _kept_runs(folder: Path) -> list[tuple[str, ReportSource]]:
    sweep = load_sweep(folder)
    several = [k for k, (_, labels) in enumerate(sweep.axes) if len(labels) > 1]
    found = [
        (
            " / ".join(trial.labels[k] for k in several) or sweep.name,
            source_of(load_run(folder / trial.folder)),
        )
        for trial in sweep.runs
        if (folder / trial.folder).is_dir()
    ]
    if not found:
        raise InputError(
            "the sweep kept no runs, only their measures",
            location=Location(str(folder)),
            hint="--what sweep draws these; cosim run SWEEP --set keep_runs=true --out DIR keeps runs",
        )
    return found


def _cell(value: object) -> str:
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(one in text for one in ',"\n\r') else text
