"""A GPU known by its data sheet alone, before and after one measured job of it: what ``cosim fit`` brings.

``python -m tests.lab.validation.one_job`` (1 minute): H100's FSDP jobs in BF16, on a GPU that has an H100's
data sheet and an A100's efficiencies; no rank stands still (``stalls``), as that was fitted to H100s, too.
Each job in turn is the measured one: of the parameters that ``cosim fit`` may set the one that moves it most
is set by it, within its bounds, and the other jobs are predicted. By closed forms (``training``), a job's
time between eight values of the parameter by interpolation.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cosim.experiment.fit_gpu import PARAMETERS
from cosim.gpu.catalogue import read
from cosim.gpu.gpus import Gpu
from cosim.gpu.parameters import bounds, value
from tests.lab.validation.fsdp_jobs import Row, rows
from tests.lab.validation.kernels import F64
from tests.lab.validation.training import fsdp_s, with_numbers

GRID = np.geomspace(0.4, 2.5, 8)
"""Values of the parameter to be set, as parts of what it was."""
LESS = 0.95
"""By how much each is changed to see what it moves."""


@cache
def known() -> Gpu:
    """An H100 as its data sheet has it, and an A100's efficiencies."""
    other = read("a100-80gb")
    fitted = {"efficiency": other.efficiency, "host": other.host}
    return read("h100-sxm").model_copy(update={**fitted, "calibration": None, "fitted": {}})


def seconds(row: Row, name: str, given_value: float) -> float:
    """Of an iteration, with another value of one parameter."""
    return fsdp_s(row, with_numbers(known(), {name: given_value}), stalls=0.0)


def most_moving(row: Row) -> str:
    """The parameter that ``cosim fit`` sets by this job alone."""
    values = {name: value(known(), name) for name in PARAMETERS}
    return min(values, key=lambda name: -abs(seconds(row, name, LESS * values[name]) / _before(row) - 1))


def _before(row: Row) -> float:
    name = PARAMETERS[0]
    return seconds(row, name, value(known(), name))


def curves(found: list[Row], name: str) -> tuple[F64, F64]:
    """float64[values] of a parameter, and float64[rows, values]: seconds over those measured."""
    low, high = bounds(name)
    tried = np.unique(np.clip(value(known(), name) * GRID, low, high))
    ratios = [[seconds(row, name, float(each)) / row.seconds for each in tried] for row in found]
    return tried, np.array(ratios)


def after(found: list[Row]) -> tuple[F64, list[str]]:
    """float64[measured, predicted]: relative errors with each job as the measured one; what it set."""
    set_by = [most_moving(row) for row in found]
    lines = {name: curves(found, name) for name in dict.fromkeys(set_by)}
    errors = np.empty((len(found), len(found)))
    for number, name in enumerate(set_by):
        values, ratios = lines[name]
        fine = np.geomspace(values[0], values[-1], 2000)
        logs = np.array([np.interp(np.log(fine), np.log(values), np.log(each)) for each in ratios])
        errors[number] = np.exp(logs[:, np.abs(logs[number]).argmin()]) - 1
    return errors, set_by


def main() -> None:
    """Before, after, and after the best and the worst job to measure."""
    found = [row for row in rows() if row.gpu == "h100-sxm" and "fp8" not in row.job["precision"]]
    before = np.array([_before(row) / row.seconds - 1 for row in found])
    print(f"data sheet: {len(found)} jobs, mean error {np.abs(before).mean():.1%}, bias {before.mean():+.1%}")
    errors, set_by = after(found)
    others = ~np.eye(len(found), dtype=np.bool_)
    means = np.array([np.abs(each[other]).mean() for each, other in zip(errors, others, strict=True)])
    was = np.array([np.abs(before[other]).mean() for other in others])
    print(
        f"one measured, the others: mean error {means.mean():.1%}, bias {errors[others].mean():+.1%};",
        end=" ",
    )
    print(f"at least halved by {(means <= was / 2).sum()} of {len(found)} jobs")
    for number in np.argsort(means):
        row = found[number]
        told = " ".join(row.job[name] for name in ("model", "gpus", "mbs", "seq"))
        print(f"  {means[number]:5.1%} by {told}, {set_by[number]}")


if __name__ == "__main__":
    main()
