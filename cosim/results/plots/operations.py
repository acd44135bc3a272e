"""A timeline for print: what ranks did in the last iteration, computation above communication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cosim.errors import InputError
from cosim.results.plots.chart import UNITS
from cosim.results.render.figure import COLORS
from cosim.results.report.lanes import lanes
from cosim.results.report.source import ReportSource
from cosim.workload.program import OpKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_RANKS = 16
_COLOURS = {
    "compute": COLORS[7],
    "memory": COLORS[1],
    "collective": COLORS[0],
    "send": COLORS[2],
    "recv": COLORS[5],
}
_BELOW = {"compute": -0.4, "memory": -0.4}
"""Where a kind's bars begin from the middle of a rank's row: computation above communication."""


def operations(source: ReportSource) -> list[dict[str, Any]]:
    """Operations of the last iteration of the first job that iterated, from the iteration's start, of the
    first :data:`MOST_RANKS` ranks that differ.

    Raises
    ------
    InputError
        The run has none.
    """
    found, shown = source.columns, lanes(source)
    if not len(shown.rows):
        raise InputError(
            "the run has no operations to draw", hint="record them: --set record.operations=true"
        )
    rank = found["job_ptr"][found["op_job"]] + found["op_rank"]
    job = next((k for k, one in enumerate(source.summary.jobs) if one.iterations_done), 0)
    ends = source.iterations(job)
    last = len(ends) - 2 if len(ends) > 1 else 0
    rows = shown.rows
    rows = rows[(found["op_job"][rows] == job) & (found["op_iteration"][rows] == last)]
    ranks = np.unique(rank[rows])[:MOST_RANKS]
    rows = rows[np.isin(rank[rows], ranks)]
    start = int(ends[last])
    long = int((found["op_end_ps"][rows] - start).max(initial=1))
    per, unit = next(one for one in UNITS["ps"] if long >= one[0])
    numbers = source.rank_numbers()
    row = found["rank_row"][rank[rows]] + found["op_op"][rows]
    kinds = [kind.value for kind in OpKind]
    texts = found["row_text"][found["row_name"][row]].tolist()
    return [
        {
            "rank": int(numbers[rank[k]]),
            "kind": kinds[int(found["row_kind"][place])],
            "name": text,
            f"start_{unit}": (int(found["op_start_ps"][k]) - start) / per,
            f"time_{unit}": (int(found["op_end_ps"][k]) - int(found["op_start_ps"][k])) / per,
        }
        for k, place, text in zip(rows.tolist(), row.tolist(), texts, strict=True)
    ]


def draw_operations(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """A row for each rank."""
    ranks, start, time = _named(rows)
    for kind, colour in _COLOURS.items():
        for k, one in enumerate(ranks):
            spans = [(row[start], row[time]) for row in rows if row["kind"] == kind and row["rank"] == one]
            label = kind.replace("recv", "receive") if spans and not k else "_"
            axes.broken_barh(spans, (k + _BELOW.get(kind, 0.02), 0.38), color=colour, lw=0, label=label)
    axes.set_yticks(range(len(ranks)), [f"rank {one}" for one in ranks])
    axes.invert_yaxis()
    axes.set_xlabel(f"time in the iteration ({start.partition('_')[2]})")
    axes.set_xlim(left=0)


def operations_script(
    rows: list[dict[str, Any]], stem: str, size: tuple[float, float], style: dict[str, Any]
) -> str:
    """What draws the same from ``stem.csv``."""
    ranks, start, time = _named(rows)
    return _SCRIPT.format(
        style=style,
        csv=f"{stem}.csv",
        pdf=f"{stem}.pdf",
        size=size,
        kinds={kind: (colour, _BELOW.get(kind, 0.02)) for kind, colour in _COLOURS.items()},
        ranks=ranks,
        names=[f"rank {one}" for one in ranks],
        start=start,
        time=time,
        label=f"time in the iteration ({start.partition('_')[2]})",
        ncols=len({row["kind"] for row in rows}),
    )


_SCRIPT = """\
import csv, matplotlib.pyplot as plt
plt.rcParams.update({style})
with open({csv!r}, encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
figure, axes = plt.subplots(figsize={size}, layout="constrained")
for kind, (colour, below) in {kinds}.items():
    for k, rank in enumerate({ranks}):
        mine = [row for row in rows if (row["kind"], row["rank"]) == (kind, str(rank))]
        spans = [(float(row[{start!r}]), float(row[{time!r}])) for row in mine]
        label = kind.replace("recv", "receive") if spans and not k else "_"
        axes.broken_barh(spans, (k + below, 0.38), color=colour, lw=0, label=label)
axes.set_yticks(range(len({names})), {names})
axes.invert_yaxis()
axes.set(xlabel={label!r}, xlim=(0, None))
figure.legend(loc="outside upper center", ncols={ncols})
figure.savefig({pdf!r})
"""


def _named(rows: list[dict[str, Any]]) -> tuple[list[int], str, str]:
    """Ranks, and the columns of starts and times, whose names end in their unit."""
    start, time = (next(key for key in rows[0] if key.startswith(f"{part}_")) for part in ("start", "time"))
    return sorted({row["rank"] for row in rows}), start, time
