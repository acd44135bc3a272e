"""Jobs that were measured on one GPU, their kernels by kind, and the same profiled without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cosim
from cosim.formats.pytorch.kernel_times import kind_of
from cosim.formats.pytorch.kineto import Work
from cosim.gpu.gpus import Gpu
from cosim.gpu.kernels import KernelKind
from cosim.models.catalogue.workload import ModelWorkload
from cosim.profiler import file
from cosim.profiler.workload import kernel_ps
from cosim.units import PS_PER_S

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
KINDS = ("products", "attention", "element-wise")
_KIND = {KernelKind.MATMUL: KINDS[0], KernelKind.ATTENTION: KINDS[1], KernelKind.ATTENTION_BACKWARD: KINDS[1]}


@dataclass(frozen=True)
class Taken:
    """How many kernels of a kind, and their seconds."""

    count: int
    seconds: float


@dataclass(frozen=True)
class Job:
    """A script with its arguments; ``profile``: where its profile is put; ``catalogue``: the same by the
    catalogue of models, where that can say it.
    """

    name: str
    script: str
    arguments: str
    measured: Path
    profile: Path
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

    def measured_kernels(self) -> dict[str, Taken]:
        """By kind. A sum of parts that a split product leaves counts with it, but is no product more."""
        names, rows = self._record["names"], self._record["kernels"]
        assert isinstance(names, list)
        assert isinstance(rows, list)
        counts: dict[str, int] = defaultdict(int)
        times: dict[str, float] = defaultdict(float)
        for number, us in rows:
            name = names[number]
            kind = kind_of(Work(0, 1, name, "7", 1, copy=name.startswith(("Memcpy", "Memset"))))
            what = KINDS[2] if kind is None else _KIND.get(kind, KINDS[2])
            counts[what] += not ("splitKreduce" in name or name.startswith(("Memcpy", "Memset")))
            times[what] += us / 1e6
        return {what: Taken(counts[what], times[what]) for what in times}

    def made_profile(self) -> file.Profile:
        """By `cosim profile`, without a GPU, unless it is there already."""
        if not self.profile.exists():
            command = [sys.executable, "-m", "cosim", "profile", self.script, "-q", "--keep-all"]
            command += ["-o", str(self.profile), "--", *self.arguments.split()]
            subprocess.run(command, check=True, cwd=ROOT)
        return file.read(self.profile)

    def simulated_kernels(self, gpu: Gpu) -> dict[str, Taken]:
        """By kind, as the profile has them on a GPU."""
        profile = self.made_profile()
        counts: dict[str, int] = defaultdict(int)
        times: dict[str, float] = defaultdict(float)
        for step in profile.programs[0].steps:
            for row, each in step.kernels:
                kernel = profile.kernels[row]
                what = KINDS[1] if "attention" in kernel[1] else KINDS[0 if kernel[1] == "matmul" else 2]
                counts[what] += each
                times[what] += each * kernel_ps(kernel, gpu, self.name) / PS_PER_S
        return {what: Taken(counts[what], times[what]) for what in times}

    def fused(self) -> tuple[Taken, Taken, float]:
        """Kernels that Inductor made, measured; how many the profile has, and the bytes that they move
        in a measured second.
        """
        names, rows = self._record["names"], self._record["kernels"]
        assert isinstance(names, list)
        assert isinstance(rows, list)
        took = [us / 1e6 for number, us in rows if names[number].startswith("triton_")]
        profile = self.made_profile()
        said = [
            (each, profile.kernels[row][4])
            for step in profile.programs[0].steps
            for row, each in step.kernels
            if profile.kernels[row][0].startswith("inductor.")
        ]
        moved = sum(each * size for each, size in said)
        seconds = sum(took)
        counted = sum(each for each, _ in said)
        return Taken(len(took), seconds), Taken(counted, 0.0), moved / seconds if took else 0.0

    def scenario(self, gpu: object) -> dict[str, object]:
        """One rank that nobody talks to."""
        self.made_profile()
        return self._alone({"kind": "profile", "path": str(self.profile), "gpu": gpu})

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


def _iteration_s(scenario: dict[str, object]) -> float:
    times = cosim.run(scenario).summary.jobs[0].iteration_ps
    return sum(times) / len(times) / PS_PER_S


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
            one.get("catalogue"),
        )
        for one in listed
        if (where := measured / f"{one['name']}.json").exists()
    ]
