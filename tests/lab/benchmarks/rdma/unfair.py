"""Two jobs of 141 ms of computation and 114 ms of communication on one link (``unfair-dcqcn``): do both gain
where one of them has DCQCN's timer of 55 us and the other 300 us? After Rajasekaran et al., HotNets 2022,
doi:10.1145/3563766.3564115, by the fluid and by packets, over seeds.

Jobs have *parted* from the iteration on from which both take what they take alone, within 2 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import cosim

SEEDS = range(6)
ITERATIONS = 20
ALONE_MS = 255.0
F64 = NDArray[np.float64]


def iterations(model: str, weight: float | None, seed: int) -> F64:
    """Milliseconds, [jobs, iterations]; ``weight``: of job two, None as the scenario has it."""
    wanted = {"network.model": model, "seed": seed, "jobs[0].iterations": ITERATIONS}
    wanted["jobs[1].iterations"] = ITERATIONS
    if weight is not None:
        wanted["jobs[1].weight"] = weight
    run = cosim.run(cosim.load("scenarios/unfair-dcqcn.yaml"), set=wanted)
    return np.array([np.asarray(job.iteration_ps) / 1e9 for job in run.summary.jobs])


def parted_at(times: F64) -> int:
    """The first iteration, from 0 on, after which both are always alone."""
    meets = np.flatnonzero((times > 1.02 * ALONE_MS).any(axis=0))
    return int(meets[-1]) + 1 if len(meets) else 0


def section() -> str:
    """A row for each network and pair of timers."""
    lines = [
        f"means over {len(SEEDS)} seeds of {ITERATIONS} iterations, ms; alone {ALONE_MS:.0f}",
        "",
        f"{'':<32}{'job one':>9}{'job two':>9}{'first five':>20}{'parted':>8}{'after':>16}",
    ]
    for model in ("congestion", "ns3_rdma"):
        for title, weight in (("both 55 us", 1.0), ("55 us beside 300 us", None)):
            times = np.array([iterations(model, weight, seed) for seed in SEEDS])
            ends = [parted_at(one) for one in times]
            count = sum(end < ITERATIONS for end in ends)
            one, two = times.mean(axis=(0, 2))
            first, second = times[:, :, :5].mean(axis=(0, 2))
            after = f"{min(ends)} to {max(ends)}"
            lines.append(
                f"{f'{model}, {title}':<32}{one:>9.1f}{two:>9.1f}{first:>12.1f}{second:>8.1f}"
                f"{f'{count}/{len(SEEDS)}':>8}{after:>16}"
            )
    return "\n".join([*lines, ""])
