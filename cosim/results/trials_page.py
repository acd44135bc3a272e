"""The page of a sweep: a table for each measure, and where the order of the first axis' choices changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cosim.results.measures import MEASURES, show_value
from cosim.results.orders import agreement, flips, shown_order
from cosim.results.terminal import align
from cosim.results.trials import Cell, Column, Trials

_WIDE = 110
_MAX_FLIPS = 6
_MAX_FAILED = 5
_MAX_COMPARED = 10


def render_trials(trials: Trials) -> str:
    """The page as text, a line feed at its end; tables are cut into parts where they would be too wide.

    Orders are compared for the first measure.
    """
    seeds = len({trial.seed for trial in trials.trials})
    count = len(trials.trials)
    head = f"{trials.name}: {count} run{'s' * (count != 1)}, {seeds} seed{'s' * (seeds != 1)}"
    several = seeds > 1
    lines = [
        head
        + (", mean ± 95 % confidence over seeds (of each by itself); * best of its column" if several else "")
    ]
    if trials.interrupted:
        lines.append(f"INTERRUPTED: {trials.interrupted}; what follows was run until then")
    for measure in trials.measures:
        lines += ["", f"{measure}: {MEASURES[measure].text}"]
        lines += _table(trials, measure)
        if measure == trials.measures[0]:
            lines += _orders(trials, measure, several)
    lines += _failed(trials)
    return "\n".join(lines) + "\n"


def named(column: Column) -> str:
    """``incast / 2:1``."""
    return " / ".join(column)


def _table(trials: Trials, measure: str) -> Iterator[str]:
    first, labels = trials.axes[0]
    head = [f"  {first}", *(f"  {label}" for label in labels)]
    columns = [[named(column) or measure, *_column(trials, column, measure)] for column in trials.columns]
    for part in _parts(head, columns):
        yield from (line.rstrip() for line in align(list(zip(head, *part, strict=True))))


def _parts(head: Sequence[str], columns: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    """As few parts as fit the page, columns spread evenly over them."""
    room = _WIDE - max(map(len, head))
    widest = max((max(map(len, column)) for column in columns), default=0) + 2
    parts = -(-len(columns) // max(1, room // widest))
    size = -(-len(columns) // max(1, parts))
    for start in range(0, len(columns), max(1, size)):
        yield list(columns[start : start + size])


def _column(trials: Trials, column: Column, measure: str) -> list[str]:
    labels = trials.axes[0][1]
    cells = {label: trials.cell((label, *column), measure) for label in labels}
    order = trials.order(column, measure)
    best = [label for label in order if cells[label].mean == cells[order[0]].mean]
    if len(best) == len(order):
        best = []
    return [_shown(cells[label], measure, label in best) for label in labels]


def _shown(cell: Cell, measure: str, best: bool) -> str:
    if cell.count == 0:
        return "-  "
    text = show_value(measure, cell.mean)
    if cell.half_width:
        unit = MEASURES[measure].unit
        if unit in ("time", "bytes", "count"):
            text += f" ±{100 * cell.half_width / cell.mean:.1f} %" if cell.mean else ""
        else:
            text += f" ±{100 * cell.half_width:.1f}" if unit == "share" else f" ±{cell.half_width:.3f}"
    return text + (" *" if best else "  ")


def _orders(trials: Trials, measure: str, several: bool) -> Iterator[str]:
    first, labels = trials.axes[0]
    columns = trials.columns
    if len(labels) < 2 or len({trials.order(column, measure) for column in columns}) < 2:
        return
    noise = "; ~: seeds explain the difference, pair by pair, 95 %" if several else ""
    yield f"  the order of {first} is not the same everywhere, best first{noise}"
    rows = [[f"    {named(column)}", shown_order(trials, column, measure)] for column in columns]
    yield from (line.rstrip() for line in align(rows, left=(0, 1)))
    if len(columns) <= _MAX_COMPARED:
        yield from _agreements(trials, measure)
    turned = flips(trials, measure)
    if not turned:
        yield f"  no two of {first} change places beyond what seeds explain"
        return
    pairs = len(labels) * (len(labels) - 1) // 2
    yield f"  {len(turned)} of {pairs} pairs change places{' beyond what seeds explain' * several}, as"
    for flip in turned[:_MAX_FLIPS]:
        up, down = (", ".join(map(named, where)) for where in (flip.better_in, flip.worse_in))
        yield f"    {flip.one} better than {flip.two}: {up}; worse: {down}"
    if len(turned) > _MAX_FLIPS:
        yield f"    ... and {len(turned) - _MAX_FLIPS} more"


def _agreements(trials: Trials, measure: str) -> Iterator[str]:
    yield "  how alike two orders are (Kendall's tau-b: 1 alike, 0 unrelated, -1 reversed)"
    columns = trials.columns
    rows = [["", *(f"({n + 1})" for n in range(len(columns) - 1))]]
    for n, column in enumerate(columns):
        taus = [agreement(trials, column, other, measure) for other in columns[:n]]
        cells = ["-" if tau is None else f"{tau:.2f}" for tau in taus]
        rows.append([f"    ({n + 1}) {named(column)}", *cells, *[""] * (len(columns) - 1 - n)])
    yield from (line.rstrip() for line in align(rows))


def _failed(trials: Trials) -> Iterator[str]:
    failed = trials.failed
    if not failed:
        return
    yield ""
    yield f"{len(failed)} run{'s' * (len(failed) != 1)} could not go on"
    for one in failed[:_MAX_FAILED]:
        yield f"  {named(one.labels)}, seed {one.seed}: {one.error.splitlines()[0]}"
    if len(failed) > _MAX_FAILED:
        yield f"  ... and {len(failed) - _MAX_FAILED} more; trials.csv has all"
