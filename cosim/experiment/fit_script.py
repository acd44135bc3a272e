"""Which script explains measured jobs: presets and kernels, before any number of the GPU is moved.

A time that is further off than the GPU's own error (two sigma) may be another script's: its attention, norms
or recomputation. Each is tried as the scenario's setting. One explains the jobs where it leaves less than
half of what they are off by, and no more than two sigma. Where several do and are within half a sigma of each
other, the jobs can't tell them apart, and all are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cosim.errors import InputError
from cosim.experiment.measured_jobs import F64, MeasuredJob
from cosim.experiment.scenario import load
from cosim.workload.contract import WorkloadSpec

_WORKLOAD = "jobs[0].workload."
_SIGMAS, _ALIKE = 2.0, 0.5


@dataclass(frozen=True)
class Script:
    """A setting of the workload, and what the jobs are off by with it, relative: mean, and sigmas."""

    setting: str
    value: str
    off: float
    sigmas: float

    def __str__(self) -> str:
        return f"{self.setting}: {self.value} ({self.off:+.1%})"

    @property
    def settings(self) -> Mapping[str, Any]:
        """By path, as a job has them."""
        return {_WORKLOAD + self.setting: self.value}


@dataclass(frozen=True)
class Scripts:
    """What the jobs are off by as they are stated, and the scripts that explain them, the best first."""

    off: float
    found: tuple[Script, ...] = ()

    @property
    def chosen(self) -> Script | None:
        """The only one that explains them; None: none does, or they can't tell several apart."""
        return self.found[0] if len(self.found) == 1 else None

    def applied(self, jobs: Sequence[MeasuredJob]) -> list[MeasuredJob]:
        """The jobs as the script has them that explains them."""
        if self.chosen is None:
            return list(jobs)
        return [replace(job, settings={**job.settings, **self.chosen.settings}) for job in jobs]

    def said(self, parameter: str) -> str:
        """A line for whoever fitted, ``parameter`` being what the GPU would have to have instead."""
        if not self.found:
            return ""
        if self.chosen is not None:
            return (
                f"{self.chosen} explains this better than {parameter}: write it into the scenario; the GPU is"
                " fitted to what it leaves"
            )
        names = " or ".join(str(one) for one in self.found)
        return (
            f"{names} explains this, or {parameter}: these jobs can't tell; measure one with other lengths of"
            " sequence, or give `--kineto`. The GPU is fitted to all of it"
        )


def scripts(jobs: Sequence[MeasuredJob], times: Sequence[float]) -> Scripts:
    """Try presets and kernels, where the jobs' ``times`` here, seconds, are further off than the GPU's error.

    Nothing is tried for jobs that were traced, whose kernels tell, or whose error isn't known. The first
    job's scripts are all jobs'.
    """
    off = _logs(jobs, times)
    before = Scripts(float(np.expm1(off.mean())))
    spec = load(jobs[0].scenario, jobs[0].settings)
    workload = spec.jobs[0].workload
    if not isinstance(workload, WorkloadSpec) or any(job.measured.kernels for job in jobs):
        return before
    error = workload.build(spec.context).error
    sigma = 0.0 if error is None else float(np.hypot(*error))
    if error is None or _rms(off) <= _SIGMAS * sigma:
        return before
    tried = []
    for setting, value in workload.other_scripts():
        given = {_WORKLOAD + setting: value}
        try:
            took = [replace(job, settings={**job.settings, **given}).simulate() for job in jobs]
        except InputError:  # not of this model
            continue
        left = _logs(jobs, took)
        if _rms(left) <= min(_rms(off) / 2, _SIGMAS * sigma):
            tried.append(Script(setting, value, float(np.expm1(left.mean())), _rms(left) / sigma))
    tried.sort(key=lambda one: one.sigmas)
    return replace(before, found=tuple(one for one in tried if one.sigmas <= tried[0].sigmas + _ALIKE))


def _logs(jobs: Sequence[MeasuredJob], times: Sequence[float]) -> F64:
    """float64[jobs]: logarithms of simulated over measured."""
    off: F64 = np.log(np.array(times) / np.array([job.seconds for job in jobs]))
    return off


def _rms(values: F64) -> float:
    return float(np.sqrt((values**2).mean()))
