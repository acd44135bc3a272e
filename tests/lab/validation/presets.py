"""Published jobs by ``preset`` alone beside what was measured: ``python -m tests.lab.validation.presets``.

Thirteen jobs of five scripts, by the script's name and what their tables' columns say: the two of torchtitan
that scenarios here have, of each of llm-foundry's rounds the first and the last that nothing was fitted to,
and of Megatron-Bridge 26.06 all dense ones that are pre-trained without FSDP. By the fast path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cosim.context import HERE
from cosim.models.catalogue.workload import ModelWorkload
from cosim.workload.program import Workload
from tests.lab.validation import fsdp_jobs, megatron_jobs
from tests.lab.validation.closed import iteration_s
from tests.lab.validation.training import by_few, cluster, predicted_s

_TITAN = {"torchtitan 8B": (2.843, False), "torchtitan 8B, compiled": (2.458, True)}


@dataclass(frozen=True)
class Job:
    """Seconds of an iteration, here and measured, and the interval of 80 %."""

    name: str
    preset: str
    simulated: float
    measured: float
    sigma: float

    @property
    def error(self) -> float:
        """Relative."""
        return self.simulated / self.measured - 1

    @property
    def within(self) -> bool:
        """Measured within the interval."""
        return abs(float(np.log(self.simulated / self.measured))) <= 1.2816 * self.sigma


def settings_of(row: megatron_jobs.Row, micro_batches: int) -> dict[str, Any]:
    """What a dense row's columns say."""
    parallel: dict[str, Any] = {name: row.number(name) for name in ("tp", "pp", "cp")} | {"dp": row.replicas}
    if row.number("vp") > 1 and row.number("pp") > 1:
        parallel |= {"schedule": "interleaved", "virtual_stages": row.number("vp")}
    return {
        "preset": "megatron-bridge-26.06",
        "model": megatron_jobs.MODELS[row.model],
        "gpu": row.gpu,
        "parallel": parallel,
        "sequence": row.number("seq"),
        "micro_batch": row.number("mbs"),
        "batch": micro_batches * row.replicas * row.number("mbs"),
        "recipe": row.recipe,
        "memory": "ignore",
    }


def jobs() -> Iterator[Job]:
    """All thirteen."""
    yield from _torchtitan()
    yield from _llm_foundry()
    yield from _megatron_bridge()


def _torchtitan() -> Iterator[Job]:
    where = cluster(next(row for row in fsdp_jobs.rows() if row.gpu == "h100-sxm"))
    for name, (measured, compiled) in _TITAN.items():
        given: dict[str, Any] = {
            "preset": "torchtitan-2024-12",
            "model": {"kind": "llama3-8b", "sequence": 8192},
            "gpu": "h100-sxm",
            "parallel": {"fsdp": 8},
            "micro_batch": 2,
            "batch": 16,
            "memory": "ignore",
            **({"framework": {"compile": True}} if compiled else {}),
        }
        made = ModelWorkload.model_validate(given).build(HERE)
        yield Job(name, given["preset"], iteration_s(made, where), measured, _sigma(made))


def _llm_foundry() -> Iterator[Job]:
    rounds: dict[str, list[fsdp_jobs.Row]] = {}
    for row in fsdp_jobs.rows()[1::2]:
        rounds.setdefault(fsdp_jobs.settings(row)["preset"], []).append(row)
    for preset, rows in sorted(rounds.items()):
        for row in (rows[0], rows[-1]):
            name = f"{row.job['model']} on {row.gpus} {row.gpu}"
            made = fsdp_jobs.workload(row, 1).build(HERE)
            yield Job(name, preset, predicted_s(row), row.seconds, _sigma(made))


def _megatron_bridge() -> Iterator[Job]:
    for row in megatron_jobs.rows():
        sharded = row.job["fsdp"].split(" ")[0] not in ("", "0", "1")
        if row.has_experts or row.release != "26.06" or sharded or "Pre-Training" not in row.job["extra"]:
            continue
        first = settings_of(row, row.number("pp"))
        took = by_few(partial(_seconds, row), row.micro_batches, (2 * row.number("pp"), 3 * row.number("pp")))
        made = ModelWorkload.model_validate(first).build(HERE)
        name = f"{row.model} on {row.gpus} {row.gpu}, {row.recipe or 'bf16'}"
        yield Job(name, first["preset"], took, row.seconds, _sigma(made))


def _seconds(row: megatron_jobs.Row, micro_batches: int | None) -> float:
    made = ModelWorkload.model_validate(settings_of(row, micro_batches or row.micro_batches))
    return iteration_s(made.build(HERE), cluster(row))


def _sigma(made: Workload) -> float:
    assert made.error is not None
    return float(np.hypot(*made.error))


def main() -> None:
    """Print the table."""
    found = list(jobs())
    for job in found:
        said = "" if job.within else "  outside"
        times = f"{job.simulated:8.3f} s {job.measured:8.3f} s  {job.error:+6.1%}"
        print(f"{job.preset:24s} {job.name:36s} {times}  +-{1.2816 * job.sigma:.0%}{said}")
    errors = np.array([job.error for job in found])
    print(f"{len(found)} jobs: mean error {np.abs(errors).mean():.1%}, bias {errors.mean():+.1%}")


if __name__ == "__main__":
    main()
