"""Measured jobs beside simulated ones, and a GPU's numbers set by them: ``cosim validate``, ``cosim fit``.

A table is CSV: ``scenario`` (a file, relative to the table), ``measured`` (``1.155s``, an iteration), and
any settings by their path (``jobs[0].workload.batch``). The iteration is the first job's, its mean.

Fitting asks first what the measurements can tell apart: how much each parameter moves each job's time, and
how many directions of these differ (singular values, Golub and Reinsch, doi:10.1007/BF02163027). As many
parameters are fitted as there are such directions, those that move most; Gauss-Newton in logarithms, within
the parameters' bounds. Not fitted: collectives, which `cosim calibrate` measures.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from cosim.errors import InputError, Location
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario, load
from cosim.gpu.calibrate import gpu_values
from cosim.gpu.efficiency import Calibration, Efficiency
from cosim.gpu.gpus import Gpu
from cosim.spec import TimePs
from cosim.units import PS_PER_S, format_time

F64 = NDArray[np.float64]
PARAMETERS = ("sustained_clock", "memory_peak", "attention_peak", "gap_time", "host_time")
"""What jobs can set: what a training adds to kernels alone, and what no data sheet says."""
_STEP, _ROUNDS, _APART = 0.05, 4, 0.1
"""Of a parameter, to see what it moves; Gauss-Newton's rounds; a direction counts from this part of the
largest.
"""
_GPU = "jobs[0].workload.gpu"


@dataclass(frozen=True)
class MeasuredJob:
    """A scenario with settings, and the seconds of its iteration."""

    scenario: str | Path
    settings: Mapping[str, Any]
    seconds: float

    def simulate(self, more: Mapping[str, Any] | None = None) -> float:
        """Seconds of an iteration here."""
        done = run(self.scenario, {**self.settings, **(more or {})})
        mean = done.summary.jobs[0].iteration_mean_ps
        if mean is None:
            raise InputError(f"{self.scenario}: no iteration ended")
        return mean / PS_PER_S

    def gpu(self) -> Gpu:
        """The first job's."""
        spec: Scenario = load(self.scenario, self.settings)
        found = getattr(spec.jobs[0].workload, "gpu", None)
        if found is None:
            raise InputError(f"{self.scenario}: the first job's workload names no gpu to fit")
        built: Gpu = found.build(spec.context)
        return built


@dataclass(frozen=True)
class Validation:
    """Jobs, and the seconds that each takes here."""

    jobs: tuple[MeasuredJob, ...]
    simulated: tuple[float, ...]

    @property
    def errors(self) -> F64:
        """Relative, of each job."""
        return np.array(self.simulated) / [job.seconds for job in self.jobs] - 1

    def __str__(self) -> str:
        lines = [f"{'measured':>12} {'simulated':>12}  error  job"]
        for job, seconds, error in zip(self.jobs, self.simulated, self.errors, strict=True):
            told = " ".join(f"{name}={value}" for name, value in job.settings.items())
            times = [format_time(round(one * PS_PER_S)) for one in (job.seconds, seconds)]
            name = f"{Path(job.scenario).stem} {told}".rstrip()
            lines.append(f"{times[0]:>12} {times[1]:>12} {error:+6.1%}  {name}")
        mean, bias = np.abs(self.errors).mean(), self.errors.mean()
        return "\n".join([*lines, f"{len(self.jobs)} jobs: mean error {mean:.1%}, bias {bias:+.1%}"])

    def draw(self, path: Path) -> None:
        """Simulated over measured, both axes logarithmic."""
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise InputError("a figure needs matplotlib", hint="pip install 'cosim-net[figures]'") from error
        figure = Figure(figsize=(5, 5))
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel="measured s", ylabel="simulated s")
        measured = [job.seconds for job in self.jobs]
        ends = [min(*measured, *self.simulated) / 1.2, max(*measured, *self.simulated) * 1.2]
        axes.plot(ends, ends, color="0.7")
        axes.plot(measured, self.simulated, "o", markersize=4)
        figure.savefig(path, bbox_inches="tight")


def read_jobs(path: Path) -> list[MeasuredJob]:
    """The jobs of a table.

    Raises
    ------
    InputError
        No such file, no such columns, a time that is none: with its line.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read {path}: {error}") from error
    if not rows or not {"scenario", "measured"} <= rows[0].keys():
        raise InputError(f"{path}: a table of jobs has columns scenario, measured, and settings by path")
    found = []
    for line, row in enumerate(rows, 2):
        settings = {key: value for key, value in row.items() if key not in ("scenario", "measured") and value}
        place = Location(str(path), line, "measured")
        found.append(MeasuredJob(path.parent / row["scenario"], settings, seconds_of(row["measured"], place)))
    return found


def seconds_of(text: str, place: Location | None = None) -> float:
    """``1.155s`` in seconds.

    Raises
    ------
    InputError
        It is no time above zero.
    """
    try:
        time_ps: int = TypeAdapter(TimePs).validate_python(text)
    except ValidationError as error:
        raise InputError(f"{text!r} is no time: write it as in 1.155s or 870ms", location=place) from error
    if time_ps <= 0:
        raise InputError(f"{text!r}: a measured iteration takes more than nothing", location=place)
    return time_ps / PS_PER_S


def validate(jobs: Sequence[MeasuredJob]) -> Validation:
    """Simulate each job.

    Raises
    ------
    InputError
        A scenario that can't be read or run.
    """
    return Validation(tuple(jobs), tuple(job.simulate() for job in jobs))


@dataclass(frozen=True)
class Fitted:
    """A GPU as the measurements have it: which parameters they tell apart, and errors before and after."""

    gpu: Gpu
    moves: Mapping[str, float]
    """By how many percent a percent of each parameter moves an iteration, the jobs' mean."""
    fitted: tuple[str, ...]
    before: Validation
    after: Validation

    def __str__(self) -> str:
        lines = [
            f"  {name:16s} 1 % of it moves an iteration by {moved:+.2f} %"
            for name, moved in self.moves.items()
        ]
        values = ", ".join(f"{name} {getattr(self.gpu.efficiency, name):.4g}" for name in self.fitted)
        verb = "s tell" if len(self.before.jobs) > 1 else " tells"
        told = f"{len(self.before.jobs)} measurement{verb} apart: {', '.join(self.fitted)}"
        errors = [f"{np.abs(each.errors).mean():.1%}" for each in (self.before, self.after)]
        return "\n".join(
            [*lines, told, f"fitted: {values}", f"mean error {errors[0]} before, {errors[1]} after"]
        )


def fit(jobs: Sequence[MeasuredJob]) -> Fitted:
    """Fit the first job's GPU to measured jobs, all of which are taken to be on it.

    Raises
    ------
    InputError
        No jobs, a job without a GPU, or nothing that any parameter moves.
    """
    if not jobs:
        raise InputError("no measured jobs to fit to")
    gpu = jobs[0].gpu()
    before = Validation(tuple(jobs), tuple(_simulated(jobs, gpu)))
    slopes = _slopes(jobs, gpu, PARAMETERS, np.array(before.simulated))
    chosen = _told_apart(slopes)
    if not chosen:
        raise InputError("no parameter of the GPU moves these jobs' times: what they wait for isn't the GPU")
    names = tuple(PARAMETERS[each] for each in chosen)
    found, times = gpu, np.array(before.simulated)
    measured = np.array([job.seconds for job in jobs])
    for _ in range(_ROUNDS):
        slope = _slopes(jobs, found, names, times)
        step = np.linalg.lstsq(slope, np.log(measured / times), rcond=None)[0]
        found = _changed(found, dict(zip(names, np.exp(np.clip(step, -0.7, 0.7)), strict=True)))
        times = np.array(_simulated(jobs, found))
        if np.abs(times / measured - 1).max() < 1e-3:
            break
    after = Validation(tuple(jobs), tuple(times))
    error = max(float(np.sqrt(np.mean(after.errors**2))), 0.03)
    dtypes = [str(getattr(load(jobs[0].scenario, jobs[0].settings).jobs[0].workload, "dtype", "bf16"))]
    source = f"{len(jobs)} measured job{'s' if len(jobs) > 1 else ''} (cosim fit)"
    found = found.model_copy(
        update={
            "calibration": Calibration(source=source, dtypes=dtypes, uncertainty=error),
            "fitted": {**gpu.fitted, **dict.fromkeys(names, source)},
        }
    )
    moves = dict(zip(PARAMETERS, slopes.mean(axis=0).tolist(), strict=True))
    return Fitted(found, moves, names, before, replace(after))


def fitted_table(fitted: Fitted) -> dict[str, Any]:
    """The file that ``gpu: {kind: table, path: ...}`` reads."""
    return {"gpu": gpu_values(fitted.gpu)}


def _simulated(jobs: Sequence[MeasuredJob], gpu: Gpu) -> list[float]:
    values = {key: value for key, value in gpu_values(gpu).items() if value is not None}
    return [job.simulate({_GPU: {"kind": "custom", **values}}) for job in jobs]


def _changed(gpu: Gpu, factors: Mapping[str, float]) -> Gpu:
    """With parameters times factors, within their bounds."""
    values: dict[str, Any] = {}
    for name, factor in factors.items():
        field = Efficiency.model_fields[name]
        low, high = (
            next(getattr(one, key) for one in field.metadata if hasattr(one, key)) for key in ("ge", "le")
        )
        value = min(max(getattr(gpu.efficiency, name) * float(factor), low), high)
        values[name] = round(value) if field.annotation is int else value
    return gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update=values)})


def _slopes(jobs: Sequence[MeasuredJob], gpu: Gpu, names: Sequence[str], times: F64) -> F64:
    """float64[jobs, names]: the relative change of a time for a relative change of a parameter."""
    columns = []
    for name in names:
        value = getattr(gpu.efficiency, name)
        tried = _changed(gpu, {name: 1 - _STEP})  # up may be out of bounds
        if not value or getattr(tried.efficiency, name) == value:
            columns.append(np.zeros(len(jobs)))
            continue
        moved = np.log(getattr(tried.efficiency, name) / value)
        columns.append(np.log(np.array(_simulated(jobs, tried)) / times) / moved)
    return np.array(columns).T


def _told_apart(slopes: F64) -> list[int]:
    """Columns that span what the jobs can tell, those that move most first."""
    values = np.linalg.svd(slopes, compute_uv=False)
    rank = int((values > max(_APART * values[0], 1e-3)).sum())
    chosen: list[int] = []
    left = slopes.copy()
    for _ in range(rank):
        best = int(np.argmax((left**2).sum(axis=0)))
        unit = left[:, best] / np.linalg.norm(left[:, best])
        left = left - unit[:, None] * (unit @ left)[None, :]
        chosen.append(best)
    return chosen
