"""Jobs that were measured on one GPU, their kernels by kind, and the same profiled without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cosim
from cosim.formats.pytorch.kernel_times import kind_of
from cosim.formats.pytorch.kineto import Work
from cosim.gpu.gpus import Gpu
from cosim.gpu.job_clock import at_clock
from cosim.gpu.kernels import KernelKind
from cosim.models.catalogue.workload import ModelWorkload
from cosim.profiler import file
from cosim.profiler.lower import KernelRow
from cosim.profiler.workload import COMPILED, KernelTimes
from cosim.units import PS_PER_S

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
KINDS = ("products", "attention", "element-wise")
_KIND = {KernelKind.MATMUL: KINDS[0], KernelKind.ATTENTION: KINDS[1], KernelKind.ATTENTION_BACKWARD: KINDS[1]}


@dataclass(frozen=True)
class Taken:
    """How many kernels of a kind, and their seconds."""

    count: int
    seconds: float


@dataclass(frozen=True)
class Job:
    """A script with its arguments; ``profiled_to``: where its profile is put; ``catalogue``: the same by the
    catalogue of models, where that can say it.
    """

    name: str
    script: str
    arguments: str
    measured: Path
    profiled_to: Path
    catalogue: dict[str, object] | None = None

    @cached_property
    def _record(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.measured.read_text())
        return found

    @property
    def seconds(self) -> float:
        """Of an iteration, the median."""
        return float(str(self._record["median_s"]))

    @property
    def memory_bytes(self) -> int:
        """The most that PyTorch's tensors had at a time."""
        return int(str(self._record["memory_bytes"]))

    @property
    def clock_mhz(self) -> float:
        """Mean, while it was timed."""
        return float(str(self._record["clock_mhz"]))

    @property
    def watts(self) -> float:
        """Mean, while it was timed."""
        return float(str(self._record["watts"]))

    @cached_property
    def kernels(self) -> list[tuple[str, float]]:
        """Name and seconds of each, in order."""
        names: Any = self._record["names"]
        rows: Any = self._record["kernels"]
        return [(names[number], us / 1e6) for number, us in rows]

    def measured_kernels(self) -> dict[str, Taken]:
        """By kind. A sum of parts that a split product leaves counts with it, but is no product more."""
        taken = []
        for name, seconds in self.kernels:
            copy = name.startswith(("Memcpy", "Memset"))
            kind = kind_of(Work(0, 1, name, "7", 1, copy=copy))
            what = KINDS[2] if kind is None else _KIND.get(kind, KINDS[2])
            taken.append((what, int(not (copy or "splitKreduce" in name)), seconds))
        return _by_kind(taken)

    @cached_property
    def profile(self) -> file.Profile:
        """By `cosim profile`, without a GPU, unless it is there already."""
        if not self.profiled_to.exists():
            command = [sys.executable, "-m", "cosim", "profile", self.script, "-q", "--keep-all"]
            command += ["-o", str(self.profiled_to), "--", *self.arguments.split()]
            subprocess.run(command, check=True, cwd=ROOT)
        return file.read(self.profiled_to)

    @property
    def profiled(self) -> Iterator[tuple[KernelRow, int]]:
        """Each kernel of the profile, and how often."""
        for step in self.profile.programs[0].steps:
            for row, times in step.kernels:
                yield self.profile.kernels[row], times

    def simulated_kernels(self, gpu: Gpu) -> dict[str, Taken]:
        """By kind, as the profile has them on a GPU at the clock that each has alone.

        An iteration is traced after a pause, and faster than those timed, by as much as its power allows.
        """
        taken, timed = (
            [],
            KernelTimes(gpu if gpu.efficiency.arithmetic_power is None else at_clock(gpu, 1.0), self.name),
        )
        for kernel, times in self.profiled:
            what = KINDS[1] if "attention" in kernel[1] else KINDS[0 if kernel[1] == "matmul" else 2]
            taken.append((what, times, times * timed.kernel_ps(kernel) / PS_PER_S))
        return _by_kind(taken)

    def fused(self) -> tuple[int, int, float]:
        """Kernels that Inductor made, measured and of the profile; bytes of these in a measured second."""
        took = [seconds for name, seconds in self.kernels if name.startswith("triton_")]
        said = [(times, kernel[4]) for kernel, times in self.profiled if kernel[0].startswith(COMPILED)]
        moved = sum(times * size for times, size in said)
        return len(took), sum(times for times, _ in said), moved / sum(took) if took else 0.0

    def scenario(self, gpu: object) -> dict[str, object]:
        """One rank that nobody talks to."""
        _ = self.profile
        return self._alone({"kind": "profile", "path": str(self.profiled_to), "gpu": gpu})

    def _alone(self, workload: dict[str, object]) -> dict[str, object]:
        return {
            "topology": {"kind": "switch", "endpoints": 1, "rate": "400Gbps", "latency": "1us"},
            "network": "fair_share",
            "jobs": [{"name": self.name, "iterations": 3, "workload": workload}],
        }

    def simulated_s(self, gpu: object) -> float:
        """Seconds of an iteration, the mean of three."""
        return _iteration_s(self.scenario(gpu))

    def by_catalogue(self, gpu: str) -> tuple[float, int]:
        """Seconds of an iteration, and bytes of the GPU's memory, without a profile."""
        assert self.catalogue is not None
        workload = {"kind": "model", "gpu": gpu, "batch": self.catalogue["micro_batch"], **self.catalogue}
        scenario = self._alone(workload)
        spec = cosim.Scenario.model_validate({"name": self.name, **scenario}).jobs[0].workload
        assert isinstance(spec, ModelWorkload)
        return _iteration_s(scenario), spec.memory_needed()


def _by_kind(taken: Iterable[tuple[str, int, float]]) -> dict[str, Taken]:
    """Sums of (kind, how many, seconds)."""
    found: dict[str, Taken] = {}
    for what, count, seconds in taken:
        before = found.get(what, Taken(0, 0.0))
        found[what] = Taken(before.count + count, before.seconds + seconds)
    return found


def _iteration_s(scenario: dict[str, object]) -> float:
    times = cosim.run(scenario).summary.jobs[0].iteration_ps
    return sum(times) / len(times) / PS_PER_S


def _of_2026(catalogue: dict[str, object] | None) -> dict[str, object] | None:
    """As PyTorch 2.11 has it: cuDNN's attention, RMS norms in one kernel."""
    if catalogue is None or not isinstance(framework := catalogue.get("framework"), dict):
        return catalogue
    return {"attention": "flash", **catalogue, "framework": {"norm": "fused"} | framework}


def jobs(measured: Path, profiles: Path) -> list[Job]:
    """Those of ``jobs.json`` that were measured there."""
    listed = json.loads((HERE / "jobs.json").read_text())
    return [
        Job(
            one["name"],
            one["script"],
            one["arguments"],
            where,
            profiles / f"{one['name']}.yaml",
            _of_2026(one.get("catalogue")),
        )
        for one in listed
        if (where := measured / f"{one['name']}.json").exists()
    ]
