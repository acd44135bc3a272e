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


def operations(source: ReportSource) -> list[dict[str, Any]]:
    """Operations of the last iteration of the first job that iterated, from the iteration's start, of the
    first :data:`MOST_RANKS` ranks that differ.

    Raises
    ------
    InputError
        The run has none, or doesn't say what its operations are.
    """
    found, shown = source.columns, lanes(source)
    if "rank_row" not in found or not len(shown.rows):
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
    ranks = sorted({row["rank"] for row in rows})
    start, time = (next(key for key in rows[0] if key.startswith(f"{part}_")) for part in ("start", "time"))
    for kind, colour in _COLOURS.items():
        mine = [row for row in rows if row["kind"] == kind]
        for k, one in enumerate(ranks):
            spans = [(row[start], row[time]) for row in mine if row["rank"] == one]
            below = kind not in ("compute", "memory")
            place = (k + (0.02 if below else -0.4), 0.38)
            label = kind.replace("recv", "receive") if spans and not k else "_"
            axes.broken_barh(spans, place, color=colour, lw=0, label=label)
    axes.set_yticks(range(len(ranks)), [f"rank {one}" for one in ranks])
    axes.invert_yaxis()
    axes.set_xlabel(f"time in the iteration ({start.partition('_')[2]})")
    axes.set_xlim(left=0)
