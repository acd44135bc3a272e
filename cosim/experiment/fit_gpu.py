"""A GPU's numbers, and its host's, set by measured jobs: ``cosim fit``.

A script that explains the jobs goes first (:mod:`cosim.experiment.fit_script`). Then fitting asks what the
measurements can tell apart: how much each parameter moves each measured time, and how many directions of
these differ (singular values, Golub and Reinsch, doi:10.1007/BF02163027). As many parameters are fitted as
there are such directions, those that move most; Gauss-Newton in logarithms, within the parameters' bounds. Of
an iteration that was traced, the kernels of each kind are measurements of their own, which weigh as much as
their share of the kernels' time. Not fitted: collectives, which `cosim calibrate` measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.errors import InputError
from cosim.experiment.fit_script import scripts
from cosim.experiment.measured_jobs import F64, MeasuredJob, Validation
from cosim.experiment.scenario import load
from cosim.gpu.calibrate import gpu_values
from cosim.gpu.efficiency import Calibration
from cosim.gpu.gpus import Gpu
from cosim.gpu.kernels import KernelKind
from cosim.gpu.parameters import PARTS, changed, owner, value
from cosim.units import PS_PER_S, format_time

PARAMETERS = ("sustained_clock", "memory_peak", "attention_peak", "gap_time", "operator_time")
"""What jobs can set: what a training adds to kernels alone, and what no data sheet says; times are the
host's.
"""
KERNEL_PARAMETERS = (*PARAMETERS, "attention_backward", "kernel_time")
"""What traced jobs can set besides."""
_STEP, _ROUNDS, _APART = 0.05, 4, 0.1
"""A parameter's step, to see what it moves; Gauss-Newton's rounds; a direction counts from this part of the
largest.
"""
_LEAST = 0.02
"""Share of the kernels' time below which a kind says nothing of a GPU."""


@dataclass(frozen=True)
class KernelError:
    """Seconds that a job's kernels of a kind take: measured, and here before and after."""

    kind: str
    measured: float
    before: float
    after: float

    def __str__(self) -> str:
        times = [
            f"{format_time(round(one * PS_PER_S)):>12}" for one in (self.measured, self.before, self.after)
        ]
        return f"{self.kind:20s} " + " ".join(times)


@dataclass(frozen=True)
class Fitted:
    """A GPU as the measurements have it: which parameters they tell apart, and errors before and after."""

    gpu: Gpu
    moves: Mapping[str, float]
    """By how many percent a percent of each parameter moves an iteration, the jobs' mean."""
    fitted: tuple[str, ...]
    before: Validation
    after: Validation
    kernels: tuple[KernelError, ...] = ()
    """The kernels of jobs that were traced."""
    script: str = ""
    """Which script explains the jobs, or which several do."""

    def __str__(self) -> str:
        lines = [
            f"  {_told_name(name):18s} 1 % of it moves an iteration by {moved:+.2f} %"
            for name, moved in self.moves.items()
        ]
        if self.kernels:
            lines.append(f"{'kernels':20s} {'measured':>12} {'before':>12} {'after':>12}")
            lines += [str(row) for row in self.kernels]
        count = len(self.before.jobs) + len(self.kernels)
        verb = "s tell" if count > 1 else " tells"
        told = [_told_name(name) for name in self.fitted]
        values = ", ".join(
            f"{shown} {_told(name, value(self.gpu, name))}"
            for shown, name in zip(told, self.fitted, strict=True)
        )
        errors = [f"{np.abs(each.errors).mean():.1%}" for each in (self.before, self.after)]
        lines.append(f"{count} measurement{verb} apart: {', '.join(told)}")
        lines += [f"fitted: {values}", f"mean error {errors[0]} before, {errors[1]} after"]
        lines += [self.script] if self.script else []
        return "\n".join(lines)


def _told_name(name: str) -> str:
    return f"host.{name}" if owner(name) == "host" else name


def _told(name: str, value: float) -> str:
    return format_time(round(value)) if name.endswith("_time") else f"{value:.4g}"


class _Measurements:
    """All that was measured, as one column: each job's iteration, and its kernels by kind."""

    def __init__(self, jobs: Sequence[MeasuredJob], gpu: Gpu) -> None:
        self.jobs = jobs
        self._kinds = [self._telling(job, gpu) for job in jobs]
        self.seconds = self._column([job.seconds for job in jobs], [job.measured.kernels for job in jobs])
        totals = [sum(job.measured.kernels.values()) for job in jobs]
        shares = [
            {kind: seconds / total for kind, seconds in job.measured.kernels.items()}
            for job, total in zip(jobs, totals, strict=True)
        ]
        self.weights = self._column([1.0] * len(jobs), shares)

    @staticmethod
    def _telling(job: MeasuredJob, gpu: Gpu) -> list[KernelKind]:
        """Kinds that count, and that the job has here, too."""
        least = _LEAST * sum(job.measured.kernels.values())
        here = job.kernels_on(gpu)
        return [kind for kind, seconds in job.measured.kernels.items() if seconds >= least and here[kind]]

    def _column(self, iterations: Sequence[float], kernels: Sequence[Mapping[KernelKind, float]]) -> F64:
        kinds = [each[kind] for each, telling in zip(kernels, self._kinds, strict=True) for kind in telling]
        return np.array([*iterations, *kinds])

    def times(self, gpu: Gpu) -> F64:
        """What each takes here."""
        iterations = [job.simulate_on(gpu) for job in self.jobs]
        return self._column(iterations, [job.kernels_on(gpu) for job in self.jobs])

    def slopes(self, gpu: Gpu, names: Sequence[str], times: F64) -> F64:
        """float64[measurements, names]: relative changes for a relative change of each parameter."""
        columns = []
        for name in names:
            before = value(gpu, name)
            tried = _changed(gpu, {name: 1 - _STEP})  # up may be out of bounds
            if not before or value(tried, name) == before:
                columns.append(np.zeros(len(times)))
                continue
            moved = np.log(value(tried, name) / before)
            columns.append(np.log(self.times(tried) / times) / moved)
        return np.array(columns).T

    def validation(self, times: F64) -> Validation:
        """The iterations among them."""
        return Validation(tuple(self.jobs), tuple(times[: len(self.jobs)].tolist()))

    def kernel_errors(self, before: F64, after: F64) -> tuple[KernelError, ...]:
        """The kernels among them."""
        names = [
            f"{Path(job.scenario).stem}: {kind.value}" if len(self.jobs) > 1 else kind.value
            for job, telling in zip(self.jobs, self._kinds, strict=True)
            for kind in telling
        ]
        columns = [each[len(self.jobs) :].tolist() for each in (self.seconds, before, after)]
        return tuple(KernelError(*row) for row in zip(names, *columns, strict=True))


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
    alone = _fit(jobs, gpu)
    tried = scripts(jobs, alone.before.simulated)
    name = alone.fitted[0]
    said = tried.said(f"{_told_name(name)} {_told(name, value(alone.gpu, name))}")
    if tried.chosen is not None:
        alone = replace(_fit(tried.applied(jobs), gpu), before=alone.before)
    return replace(alone, script=said)


def _fit(jobs: Sequence[MeasuredJob], gpu: Gpu) -> Fitted:
    """Without asking for a script."""
    measurements = _Measurements(jobs, gpu)
    parameters = _parameters(
        gpu, KERNEL_PARAMETERS if any(job.measured.kernels for job in jobs) else PARAMETERS
    )
    before = times = measurements.times(gpu)
    slopes = measurements.slopes(gpu, parameters, before)
    chosen = _told_apart(slopes)
    if not chosen:
        raise InputError("no parameter of the GPU moves these jobs' times: what they wait for isn't the GPU")
    names = tuple(parameters[each] for each in chosen)
    found = gpu
    for _ in range(_ROUNDS):
        slope, off = measurements.slopes(found, names, times), np.log(measurements.seconds / times)
        weights = measurements.weights
        step = np.linalg.lstsq(slope * weights[:, None], off * weights, rcond=None)[0]
        found = _changed(found, dict(zip(names, np.exp(np.clip(step, -0.7, 0.7)), strict=True)))
        times = measurements.times(found)
        if np.abs(times / measurements.seconds - 1).max() < 1e-3:
            break
    moves = dict(zip(parameters, slopes[: len(jobs)].mean(axis=0).tolist(), strict=True))
    after = measurements.validation(times)
    return Fitted(
        _calibrated(found, jobs, names, after),
        moves,
        names,
        measurements.validation(before),
        after,
        measurements.kernel_errors(before, times),
    )


def _parameters(gpu: Gpu, names: Sequence[str]) -> tuple[str, ...]:
    """A training's own share of the memory's rate, where the GPU has one."""
    apart = gpu.efficiency.memory_training is not None
    return tuple("memory_training" if apart and name == "memory_peak" else name for name in names)


def _calibrated(gpu: Gpu, jobs: Sequence[MeasuredJob], names: Sequence[str], after: Validation) -> Gpu:
    """It says what it was fitted to, and how well that went."""
    error = max(float(np.sqrt(np.mean(after.errors**2))), 0.03)
    dtypes = [str(getattr(load(jobs[0].scenario, jobs[0].settings).jobs[0].workload, "dtype", "bf16"))]
    source = f"{len(jobs)} measured job{'s' if len(jobs) > 1 else ''} (cosim fit)"
    own, hosts = (dict.fromkeys((name for name in names if owner(name) == part), source) for part in PARTS)
    return gpu.model_copy(
        update={
            "calibration": Calibration(source=source, dtypes=dtypes, uncertainty=error),
            "fitted": {**gpu.fitted, **own},
            "host": gpu.host.model_copy(update={"fitted": {**gpu.host.fitted, **hosts}}),
        }
    )


def fitted_table(fitted: Fitted) -> dict[str, Any]:
    """The file that ``gpu: {kind: table, path: ...}`` reads, its host within."""
    return {"gpu": gpu_values(fitted.gpu)}


def _changed(gpu: Gpu, factors: Mapping[str, float]) -> Gpu:
    """With parameters times factors, within their bounds."""
    return changed(gpu, {name: value(gpu, name) * float(factor) for name, factor in factors.items()})


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
