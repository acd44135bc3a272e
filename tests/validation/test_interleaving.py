"""Jobs that share a link: MLTCP and unfair DCQCN slide them apart, as their papers say."""

from __future__ import annotations

import numpy as np
import pytest

import cosim
from cosim.experiment.scenario import loads

COMPUTE_US, SIZE = 10_000, 5_000_000


def run(
    control: str, jobs: list[tuple[int, int, int, int, float]], gbps: int = 10, mtu: int = 1500
) -> list[np.ndarray]:
    """Iteration times (ms) of jobs (compute us, bytes, start us, iterations, weight) on one link."""
    ends = ", ".join(f"s{k}, r{k}" for k in range(len(jobs)))
    text = f"topology:\n  kind: graph\n  endpoints: [{ends}]\n  switches: [left, right]\n  links:\n"
    text += f"    - {{from: left, to: right, rate: {gbps}Gbps, latency: 1us}}\n"
    for k in range(len(jobs)):
        text += f"    - {{from: s{k}, to: left, rate: {max(40, gbps)}Gbps, latency: 1us}}\n"
        text += f"    - {{from: right, to: r{k}, rate: {max(40, gbps)}Gbps, latency: 1us}}\n"
    text += f"network: {{model: congestion, mtu: {mtu} B, control: {control}}}\njobs:\n"
    for k, (compute, size, start, iterations, weight) in enumerate(jobs):
        text += f"  - {{name: j{k}, iterations: {iterations}, start: {start}us, weight: {weight}, workload: "
        text += f"{{kind: periodic, compute: {compute}us, size: {size}B}}}}\n"
    done = cosim.run(loads(text))
    return [np.array(job.iteration_ps) / 1e9 for job in done.summary.jobs]


@pytest.mark.parametrize("offsets", [(275, 1165), (1735, 1643), (1334, 777, 1615), (58, 1829, 1711)])
def test_mltcp_brings_jobs_that_fit_to_their_time_alone(offsets: tuple[int, ...]) -> None:
    """arXiv:2402.09589: two and three jobs of equal c + d with sum of d / (c + d) <= 1, within 20
    iterations."""
    compute = 6_000 if len(offsets) == 2 else COMPUTE_US
    alone = compute / 1e3 + SIZE * 8 / 10e6
    found = run("{kind: mltcp, over: dctcp}", [(compute, SIZE, at, 30, 1) for at in offsets])
    assert max(times[0] for times in found) > 1.1 * alone
    assert all(times[20:].mean() <= 1.01 * alone for times in found)


def test_a_decreasing_function_keeps_jobs_together() -> None:
    found = run(
        "{kind: mltcp, over: dctcp, slope: -1.75, intercept: 2}",
        [(6_000, SIZE, at, 30, 1) for at in (0, 300)],
    )
    assert all(times[20:].mean() > 1.2 * 10.0 for times in found)


@pytest.mark.parametrize("control", ["dctcp", "{kind: swift, fs_range: 0us}"])
@pytest.mark.parametrize(("count", "compute"), [(2, 6_000), (3, 10_000), (3, 8_500)])
def test_random_offsets_part_where_communication_is_many_sawteeth_long(
    count: int, compute: int, control: str
) -> None:
    """Communication of 20 ms. Swift's flow scaling, which gives small windows a larger target, is off: it
    evens out what F sets apart."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        starts = rng.integers(0, 5 * (compute + 4_000), count).tolist()
        jobs = [(5 * compute, 5 * SIZE, at, 30, 1.0) for at in starts]
        found = run(f"{{kind: mltcp, over: {control}}}", jobs)
        assert all(times[20:].mean() <= 1.01 * 5 * (compute / 1e3 + 4) for times in found)


def _ideal(jobs: list[tuple[float, float]], step: float = 0.05) -> list[float]:
    """Mean of the last iterations of jobs (compute, communication in ms) whose shares are as F(sent)."""
    state = [[compute, 0.0, 0.0] for compute, _ in jobs]  # left to compute, sent, begun
    times: list[list[float]] = [[] for _ in jobs]
    for tick in range(round(2_500 / step)):
        weights = [
            1.75 * s[1] / d + 0.25 if s[0] <= 1e-9 else 0.0 for s, (_, d) in zip(state, jobs, strict=True)
        ]
        for one, weight, done, (compute, size) in zip(state, weights, times, jobs, strict=True):
            one[0] -= step
            if weight == 0.0:
                continue
            one[1] += step * weight / sum(weights)
            if one[1] >= size - 1e-9:
                done.append((tick + 1) * step - one[2])
                one[:] = [compute, 0.0, (tick + 1) * step]
    return [float(np.mean(done[-8:])) for done in times]


def test_jobs_of_unequal_periods_can_not_fully_part() -> None:
    """100 ms with 35 % and 50 ms with 65 % communication: the long one does not fit into the short one's
    17.5 ms. An ideal fluid, shares in proportion to F, gives 1.175 of its own period for both."""
    jobs = [(65_000, 43_750_000, 0, 20, 1.0), (17_500, 40_625_000, 0, 40, 1.0)]
    long, short = run("{kind: mltcp, over: dctcp}", jobs)
    ideal = _ideal([(65.0, 35.0), (17.5, 32.5)])
    assert long[-8:].mean() == pytest.approx(ideal[0], rel=0.02)
    assert short[-8:].mean() == pytest.approx(ideal[1], rel=0.02)
    assert ideal[0] / 100 == pytest.approx(1.175, abs=0.005)


def test_an_unfair_timer_speeds_both_jobs_up() -> None:
    """HotNets 2022, doi:10.1145/3563766.3564115: DCQCN with timers of 55 us beside 300 us, up to 1.3x for
    both."""
    job = 141_000, 712_500_000, 0, 6
    fair = run("dcqcn", [(*job, 1.0), (*job, 1.0)], gbps=50)
    unfair = run("dcqcn", [(*job, 1.0), (*job, 55 / 300)], gbps=50)
    assert all(a[3:].mean() / b[3:].mean() > 1.25 for a, b in zip(fair, unfair, strict=True))
