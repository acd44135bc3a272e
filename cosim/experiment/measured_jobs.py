"""Measured jobs beside simulated ones: ``cosim validate``, and what ``cosim fit`` starts from.

A table is CSV: ``scenario`` (a file, relative to the table), ``measured`` (``1.155s``, an iteration) or
``kineto`` (traces of it, relative likewise), and any settings by their path (``jobs[0].workload.batch``). The
iteration is the first job's, its mean.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError, Location, install_extra
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario, load
from cosim.files.whole import whole_file
from cosim.gpu.calibrate import gpu_values
from cosim.gpu.contract import GpuSpec
from cosim.gpu.gpus import Gpu, build_gpu
from cosim.gpu.kernel_share import KernelShare
from cosim.gpu.kernels import KernelKind
from cosim.host.contract import HostSpec
from cosim.units import PS_PER_S, format_time, parse_measured
from cosim.workload.contract import WorkloadSpec

F64 = NDArray[np.float64]
GPU_SETTING, HOST_SETTING = "jobs[0].workload.gpu", "jobs[0].workload.host"
_OWN = ("scenario", "measured", "kineto")


@dataclass(frozen=True)
class MeasuredIteration:
    """Seconds of an iteration; and of a rank's kernels in it by their kind, where known, the ranks' mean."""

    seconds: float
    kernels: Mapping[KernelKind, float] = field(default_factory=dict)
    ranks: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class MeasuredJob:
    """A scenario with settings, and what was measured of its iteration."""

    scenario: str | Path
    settings: Mapping[str, Any]
    measured: MeasuredIteration

    @property
    def seconds(self) -> float:
        """The measured iteration, seconds."""
        return self.measured.seconds

    def simulate(self, more: Mapping[str, Any] | None = None) -> float:
        """Seconds of an iteration here."""
        done = run(self.scenario, {**self.settings, **(more or {})})
        mean = done.summary.jobs[0].iteration_mean_ps
        if mean is None:
            raise InputError(f"{self.scenario}: no iteration ended")
        return mean / PS_PER_S

    def simulate_on(self, gpu: Gpu) -> float:
        """Seconds of an iteration on a GPU and its host, whichever the scenario names."""
        values = {key: value for key, value in gpu_values(gpu).items() if value is not None}
        settings: dict[str, Any] = {GPU_SETTING: {"kind": "custom", **values}}
        if self.host() is not None:
            settings[HOST_SETTING] = None
        return self.simulate(settings)

    def kernels_on(self, gpu: Gpu) -> dict[KernelKind, float]:
        """Seconds that kernels of each measured kind take here, of the measured ranks' mean.

        Raises
        ------
        InputError
            A rank was measured that the job doesn't have.
        """
        spec = load(self.scenario, self.settings)
        given, found = spec.jobs[0].workload, {}
        assert isinstance(given, WorkloadSpec)  # as a file says it
        for kind in self.measured.kernels:
            workload = given.model_copy(update={"gpu": KernelShare.of(gpu, kind)}).build(spec.context)
            if (last := max(self.measured.ranks)) >= len(workload.program_of):
                ranks = len(workload.program_of)
                raise InputError(f"{self.scenario}: rank {last} was measured, but the job has {ranks} ranks")
            total = sum(workload.programs[workload.program_of[rank]].busy_ps for rank in self.measured.ranks)
            found[kind] = total / len(self.measured.ranks) / PS_PER_S
        return found

    def gpu(self) -> Gpu:
        """The first job's, on its host."""
        spec: Scenario = load(self.scenario, self.settings)
        found = spec.jobs[0].runs_on(spec.context)
        if not isinstance(found, GpuSpec):
            raise InputError(f"{self.scenario}: the first job's workload names no gpu to fit")
        return build_gpu(found, self.host(), spec.context)

    def host(self) -> HostSpec | None:
        """What the first job names beside its GPU; None: nothing."""
        workload = load(self.scenario, self.settings).jobs[0].workload
        found = workload.issued_by() if isinstance(workload, WorkloadSpec) else None
        return found if isinstance(found, HostSpec) else None


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
            raise InputError("a figure needs matplotlib", hint=install_extra("plot")) from error
        figure = Figure(figsize=(5, 5))
        axes = figure.add_subplot(xscale="log", yscale="log", xlabel="measured s", ylabel="simulated s")
        measured = [job.seconds for job in self.jobs]
        ends = [min(*measured, *self.simulated) / 1.2, max(*measured, *self.simulated) * 1.2]
        axes.plot(ends, ends, color="0.7")
        axes.plot(measured, self.simulated, "o", markersize=4)
        with whole_file(path) as part:
            figure.savefig(part, bbox_inches="tight")


def read_jobs(path: Path, read_trace: Callable[[Path], MeasuredIteration] | None = None) -> list[MeasuredJob]:
    """The jobs of a table; ``read_trace`` reads those that are measured by a trace.

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
    if not rows or "scenario" not in rows[0] or not {"measured", "kineto"} & rows[0].keys():
        raise InputError(
            f"{path}: a table of jobs has columns scenario, measured or kineto, and settings by path"
        )
    found = []
    for line, row in enumerate(rows, 2):
        settings = {key: value for key, value in row.items() if key not in _OWN and value}
        measured, trace = row.get("measured"), row.get("kineto")
        if trace and read_trace is not None:
            iteration = read_trace(path.parent / trace)
            if measured:  # what was measured without the profiler, which takes time itself
                seconds = seconds_of(measured, Location(str(path), line, "measured"))
                iteration = replace(iteration, seconds=seconds)
        else:
            seconds = seconds_of(measured or "", Location(str(path), line, "measured"))
            iteration = MeasuredIteration(seconds)
        found.append(MeasuredJob(path.parent / row["scenario"], settings, iteration))
    return found


def seconds_of(text: str, place: Location | None = None) -> float:
    """``1.155s`` in seconds.

    Raises
    ------
    InputError
        It is no time above zero.
    """
    try:
        seconds = parse_measured(text)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{text!r} is no time: write it as in 1.155s or 870ms", location=place) from error
    if seconds <= 0:
        raise InputError(f"{text!r}: a measured iteration takes more than nothing", location=place)
    return seconds


def validate(jobs: Sequence[MeasuredJob]) -> Validation:
    """Simulate each job.

    Raises
    ------
    InputError
        A scenario that can't be read or run.
    """
    return Validation(tuple(jobs), tuple(job.simulate() for job in jobs))
