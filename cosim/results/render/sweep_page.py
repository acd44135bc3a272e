"""The page of a sweep: a table for each measure, and where the order of the first axis' choices changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cosim.results.orders import agreement, letters, reversals, shown_order
from cosim.results.quantities import QUANTITIES
from cosim.results.render.page import MARK, Lines, Page, PageTable, Section, points_section
from cosim.results.sweep import Cell, Column, SweepRun

_PAGE_WIDTH = 110
_MAX_REVERSALS = 6
_MAX_FAILED = 5
_MAX_INFEASIBLE = 3
_MAX_COMPARED = 10


def sweep_page(sweep: SweepRun) -> Page:
    """Sections of the page; tables are cut into parts where they would be too wide.

    Orders are compared for the first measure.
    """
    seeds = len({trial.seed for trial in sweep.runs})
    count = len(sweep.runs)
    several = seeds > 1
    title = f"{sweep.name}: {count} run{'s' * (count != 1)}, {seeds} seed{'s' * (seeds != 1)}"
    if several:
        title += ", mean ± 95 % confidence over seeds (of each by itself); * best of its column"
    head = [Lines([title], bold=True)]
    if several and len(sweep.axes[0][1]) > 1:
        head.append(Lines(["choices that share a letter can't be told apart by the paired test, 95 %"]))
    if sweep.interrupted:
        head.append(Lines([f"INTERRUPTED: {sweep.interrupted}; what follows was run until then"], bold=True))
    sections = [Section(head), *points_section((named(one.labels), one.doubtful) for one in sweep.runs)]
    for measure in sweep.measures:
        parts: list[PageTable | Lines] = [Lines([f"{measure}: {QUANTITIES[measure].text}"], bold=True)]
        parts += _tables(sweep, measure)
        parts += _over_baseline(sweep, measure)
        parts += _orders(sweep, measure, several, first=measure == sweep.measures[0])
        sections.append(Section(parts))
    return [*sections, *_infeasible(sweep), *_failed(sweep)]


def named(column: Column) -> str:
    """``incast / 2:1``."""
    return " / ".join(column)


def _tables(sweep: SweepRun, measure: str) -> Iterator[PageTable]:
    first, labels = sweep.axes[0]
    head = [f"  {first}", *(f"  {label}" for label in labels)]
    columns = [[named(column) or measure, *_column(sweep, column, measure)] for column in sweep.columns]
    for part in _parts(head, columns):
        yield PageTable(list(zip(head, *part, strict=True)))


def _parts(head: Sequence[str], columns: Sequence[list[str]]) -> Iterator[Sequence[list[str]]]:
    """As few parts as fit the page, columns spread evenly over them."""
    room = _PAGE_WIDTH - max(map(len, head))
    widest = max((max(map(len, column)) for column in columns), default=0) + 2
    parts = -(-len(columns) // max(1, room // widest))
    size = max(1, -(-len(columns) // max(1, parts)))
    for start in range(0, len(columns), size):
        yield columns[start : start + size]


def _column(sweep: SweepRun, column: Column, measure: str) -> list[str]:
    labels = sweep.axes[0][1]
    cells = {label: sweep.cell((label, *column), measure) for label in labels}
    order = sweep.order(column, measure)
    best = [label for label in order if cells[label].mean == cells[order[0]].mean]
    if len(best) == len(order):
        best = []
    doubtful = {label for label in labels if sweep.doubtful((label, *column))}
    groups = letters(sweep, column, measure) if len(order) > 1 else {}
    width = max(map(len, groups.values()), default=0)
    return [
        _shown(cells[label], measure, label in best, label in doubtful, groups.get(label, "").ljust(width))
        for label in labels
    ]


def _shown(cell: Cell, measure: str, best: bool, doubtful: bool, group: str) -> str:
    group = f" {group}" if group else ""
    if cell.count == 0:
        return f"-{group}  "
    quantity = QUANTITIES[measure]
    text = quantity.unit.show(cell.mean)
    if cell.half_width:
        if quantity.kind == "share":
            text += f" ±{100 * cell.half_width:.1f}"
        elif quantity.kind == "ratio":
            text += f" ±{cell.half_width:.3f}"
        else:
            text += f" ±{100 * cell.half_width / cell.mean:.1f} %" if cell.mean else ""
    return text + (f" {MARK}" if doubtful else "") + group + (" *" if best else "  ")


def _over_baseline(sweep: SweepRun, measure: str) -> Iterator[PageTable | Lines]:
    """Each choice over the baseline, where one was named."""
    first, labels = sweep.axes[0]
    others = [label for label in labels if label != sweep.baseline]
    if not sweep.baseline or not others:
        return
    yield Lines([f"  over {sweep.baseline}, seed by seed"])
    head = [f"    {first}", *(f"    {label}" for label in others)]
    columns = [
        [named(column) or measure, *(_ratio(sweep.over_baseline((o, *column), measure)) for o in others)]
        for column in sweep.columns
    ]
    for part in _parts(head, columns):
        yield PageTable(list(zip(head, *part, strict=True)))


def _ratio(cell: Cell) -> str:
    if cell.count == 0:
        return "-"
    return f"{cell.mean:.3f}" + (f" ±{cell.half_width:.3f}" if cell.half_width else "")


def _orders(sweep: SweepRun, measure: str, several: bool, *, first: bool) -> Iterator[PageTable | Lines]:
    """The order in each column, where there is one; of the ``first`` measure also where it changes."""
    axis, labels = sweep.axes[0]
    columns = sweep.columns
    orders = [shown_order(sweep, column, measure) for column in columns]
    if len(labels) < 2 or not any(len(sweep.order(column, measure)) > 1 for column in columns):
        return
    noise = "; ~: seeds explain the difference, pair by pair, 95 %" if several else ""
    if len(set(orders)) == 1:
        where = " everywhere" if len(columns) > 1 else ""
        yield Lines([f"  the order of {axis}{where}, best first{noise}", f"    {orders[0]}"])
        return
    if len({sweep.order(column, measure) for column in columns}) < 2:
        yield Lines([f"  the order of {axis}, best first{noise}"])
    else:
        yield Lines([f"  the order of {axis} is not the same everywhere, best first{noise}"])
    rows = [[f"    {named(column)}", order] for column, order in zip(columns, orders, strict=True)]
    yield PageTable(rows, left=(0, 1), headless=True)
    if not first or len({sweep.order(column, measure) for column in columns}) < 2:
        return
    if len(columns) <= _MAX_COMPARED:
        yield from _agreements(sweep, measure)
    yield Lines([*_reversals(sweep, measure, several)])


def _reversals(sweep: SweepRun, measure: str, several: bool) -> Iterator[str]:
    first, labels = sweep.axes[0]
    turned = reversals(sweep, measure)
    if not turned:
        yield f"  no two of {first} change places beyond what seeds explain"
        return
    pairs = len(labels) * (len(labels) - 1) // 2
    yield f"  {len(turned)} of {pairs} pairs change places{' beyond what seeds explain' * several}, as"
    for one in turned[:_MAX_REVERSALS]:
        up, down = (", ".join(map(named, where)) for where in (one.better_in, one.worse_in))
        yield f"    {one.one} better than {one.two}: {up}; worse: {down}"
    if len(turned) > _MAX_REVERSALS:
        yield f"    ... and {len(turned) - _MAX_REVERSALS} more"


def _agreements(sweep: SweepRun, measure: str) -> Iterator[PageTable | Lines]:
    yield Lines(["  how alike two orders are (Kendall's tau-b: 1 alike, 0 unrelated, -1 reversed)"])
    columns = sweep.columns
    rows = [["", *(f"({n + 1})" for n in range(len(columns) - 1))]]
    for n, column in enumerate(columns):
        taus = [agreement(sweep, column, other, measure) for other in columns[:n]]
        cells = ["-" if tau is None else f"{tau:.2f}" for tau in taus]
        rows.append([f"    ({n + 1}) {named(column)}", *cells, *[""] * (len(columns) - 1 - n)])
    yield PageTable(rows)


def _infeasible(sweep: SweepRun) -> Iterator[Section]:
    """What each choice that can't be would need; it has no run on any seed."""
    found = {named(one.labels): one.reason for one in sweep.infeasible}
    if not found:
        return
    lines = [f"{len(found)} choice{'s' * (len(found) != 1)} can't be"]
    shown = list(found.items())[:_MAX_INFEASIBLE]
    lines += [f"  {labels}: {reason.splitlines()[0]}" for labels, reason in shown]
    if len(found) > len(shown):
        lines.append(f"  ... and {len(found) - len(shown)} more; trials.csv has all")
    yield Section([Lines(lines)])


def _failed(sweep: SweepRun) -> Iterator[Section]:
    failed = sweep.failed
    if not failed:
        return
    lines = [f"{len(failed)} run{'s' * (len(failed) != 1)} could not go on"]
    lines += [
        f"  {named(one.labels)}, seed {one.seed}: {one.error.splitlines()[0]}" for one in failed[:_MAX_FAILED]
    ]
    if len(failed) > _MAX_FAILED:
        lines.append(f"  ... and {len(failed) - _MAX_FAILED} more; trials.csv has all")
    yield Section([Lines(lines)])
