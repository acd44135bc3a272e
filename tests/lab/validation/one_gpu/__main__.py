"""What one GPU took beside what cosim says: ``python -m tests.lab.validation.one_gpu [GPU ...]``.

Each job of ``jobs.json`` is profiled without a GPU (`cosim profile`, 5 minutes for all) and simulated on each
GPU named (of the catalogue, or a file; default ``h100-sxm-pytorch`` and ``h100-sxm``): its iteration, and its
products, attention and element-wise kernels, how many and their milliseconds. ``--only=NAME,NAME`` takes
those jobs; ``--measured=h200`` (or ``h100-again``): measured there; ``--profiles=FOLDER`` keeps profiles
there. ``--fit=NAME,NAME``: the GPU fitted to these jobs' iterations by `cosim fit`, the others' error.
ResNet-50 needs torchvision, and is left out where that isn't installed. The word ``kernels``: products,
attention and element-wise kernels alone, beside the package and the published tables. The word ``fit``: what
jobs say of the first H100's operators and power. The word ``catalogue``: jobs that the catalogue can
say, without a profile: iteration and memory.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from cosim.context import HERE as HERE_CONTEXT
from cosim.experiment.fit_gpu import fit, fitted_table
from cosim.experiment.measured_jobs import MeasuredIteration, MeasuredJob
from cosim.gpu.catalogue import read
from cosim.gpu.gpus import Gpu, GpuTable
from tests.lab.validation.one_gpu import alone
from tests.lab.validation.one_gpu.fit import fitted as fit_powers
from tests.lab.validation.one_gpu.jobs import HERE, KINDS, Job, jobs

WAITS_FOR_HOST = ("small", "gpt2-124m-by-tensor", "gpt2-350m-by-tensor")
FITTED = {
    "h100-sxm-pytorch": (
        "gpt2-124m", "llama-1b", "llama-8b-6", "llama-8b-12-checkpoint", "resnet-50", "small",
    )
}  # fmt: skip
"""Jobs that a GPU's clock and memory, and its host's operator, were fitted to."""


def report(found: Sequence[Job], name: str, seen: Sequence[str]) -> list[str]:
    """A line for each job, and mean errors; ``seen``: jobs that the GPU was fitted to."""
    gpu: Gpu = GpuTable(path=name).build(HERE_CONTEXT) if name.endswith(".yaml") else read(name)
    lines = [f"{name}: milliseconds measured, simulated; kernels measured/profiled, their milliseconds"]
    errors = {}
    for job in found:
        written = {"kind": "table", "path": name} if name.endswith(".yaml") else name
        errors[job.name] = job.simulated_s(written) / job.seconds - 1
        took, said = job.measured_kernels(), job.simulated_kernels(gpu)
        parts = [
            f"{what} {took[what].count}/{said[what].count} {took[what].seconds * 1e3:.1f} "
            f"{said[what].seconds * 1e3:.1f}"
            for what in KINDS
            if what in took and what in said
        ]
        now = job.seconds * (1 + errors[job.name]) * 1e3
        lines.append(
            f"{job.name:24s} {job.seconds * 1e3:8.1f} {now:8.1f} {errors[job.name]:+6.1%} "
            f"{job.clock_mhz:5.0f} MHz  " + "; ".join(parts)
        )
        there, here, rate = job.fused()
        if there:
            share = rate * 8 / gpu.memory_rate
            lines.append(f"{'':24s} of them fused {there}/{here}, {share:.2f} of the memory's rate")
    for what, those in (
        ("all", list(errors)),
        ("all that wait for the GPU", [each for each in errors if each not in WAITS_FOR_HOST]),
        ("not fitted to", [each for each in errors if seen and each not in seen]),
    ):
        if those:
            own = np.array([errors[each] for each in those])
            lines.append(
                f"{what}: {len(own)} jobs, mean error {np.abs(own).mean():.1%}, bias {own.mean():+.1%}"
            )
    return lines


def fitted(found: Sequence[Job], names: Sequence[str], gpu: str, folder: Path) -> str:
    """A GPU's file, fitted to the iterations of the jobs named."""
    measured = []
    for job in found:
        if job.name in names:
            scenario = folder / f"fit-{job.name}.yaml"
            scenario.write_text(yaml.safe_dump(job.scenario(gpu)))
            measured.append(MeasuredJob(scenario, {}, MeasuredIteration(job.seconds)))
    table = fit(measured)
    out = folder / "fitted.yaml"
    out.write_text(yaml.safe_dump(fitted_table(table), sort_keys=False))
    print(f"fitted to {', '.join(names)}: {table.fitted}")
    return str(out)


def main(arguments: Sequence[str]) -> None:
    """Print what is asked for."""
    words = [word for word in arguments if not word.startswith("--")]
    options = dict(word.removeprefix("--").split("=", 1) for word in arguments if word.startswith("--"))
    if "kernels" in words:
        where = options.get("measured", "h100")
        known = f"{where.partition('-')[0]}-sxm"
        table = known.replace("-", "_")
        print("\n".join(alone.report(HERE / where / "kernels.json", read(known), table)))
    if "catalogue" in words:
        for job in jobs(HERE / "h100", HERE):
            if job.catalogue is not None:
                seconds, size = job.by_catalogue("h100-sxm-pytorch")
                print(
                    f"{job.name:24s} {job.seconds * 1e3:8.1f} {seconds * 1e3:8.1f} ms "
                    f"{seconds / job.seconds - 1:+6.1%}, {job.memory_bytes / 1e9:6.2f} {size / 1e9:6.2f} GB "
                    f"{size / job.memory_bytes - 1:+6.1%}"
                )
    if {"kernels", "catalogue"} & {*words}:
        words = [word for word in words if word not in ("kernels", "catalogue")]
        if not words:
            return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(options.get("profiles", name))
        found = jobs(HERE / options.get("measured", "h100"), folder)
        if importlib.util.find_spec("torchvision") is None:
            found = [job for job in found if "resnet" not in job.name]
        if "only" in options:
            found = [job for job in found if job.name in options["only"].split(",")]
        if "fit" in words:
            seen_jobs = [job for job in found if job.name in FITTED["h100-sxm-pytorch"]]
            told = fit_powers(seen_jobs, read("h100-sxm-pytorch")).efficiency
            print(f"fitted to {', '.join(job.name for job in seen_jobs)}:")
            for name in ("memory_training", "element_rate", "arithmetic_power", "memory_power"):
                print(f"  {name} {getattr(told, name):.4g}")
            return
        gpus = words or ["h100-sxm-pytorch", "h100-sxm"]
        seen: dict[str, Sequence[str]] = {**FITTED}
        if "fit" in options:
            names = options["fit"].split(",")
            gpus = [*gpus, fitted(found, names, gpus[-1], folder)]
            seen[gpus[-1]] = names
        for gpu in gpus:
            print("\n".join(report(found, gpu, seen.get(gpu, ()))))


if __name__ == "__main__":
    main(sys.argv[1:])
