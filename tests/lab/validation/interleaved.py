"""Periodic jobs on one link: in the congestion network, and as MLTCP's paper idealises them.

``run`` and ``alone`` have the network under test; ``ideal`` integrates, in steps of a microsecond and with
nothing of cosim's, the fluid in which each job that communicates has a share of the link in proportion to
F(what it has sent of its iteration); ``shares`` asks how near a control comes to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

import cosim
from cosim.experiment.build import build
from cosim.experiment.scenario import loads
from cosim.network.congestion.network import CongestionNetwork
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.units import NEVER, PS_PER_MS, PS_PER_US

F64 = NDArray[np.float64]
SLOPE, INTERCEPT = 1.75, 0.25


class Job(NamedTuple):
    """Computes for ``compute_us``, then sends what takes ``send_us`` by itself; a scenario's weight."""

    compute_us: int
    send_us: int
    start_us: int = 0
    iterations: int = 30
    weight: float = 1.0


def mltcp(over: str, slope: float = SLOPE, intercept: float = INTERCEPT) -> str:
    """The control, as a scenario has it."""
    return f"{{kind: mltcp, over: {over}, slope: {slope}, intercept: {intercept}}}"


def scenario(control: str, jobs: Sequence[Job], gbps: int, mtu: int) -> str:
    """Jobs on one link; those of hosts are no narrower, nor than 40 Gb/s."""
    ends = ", ".join(f"s{k}, r{k}" for k in range(len(jobs)))
    host = max(40, gbps)
    text = f"topology:\n  kind: graph\n  endpoints: [{ends}]\n  switches: [left, right]\n  links:\n"
    text += f"    - {{from: left, to: right, rate: {gbps}Gbps, latency: 1us}}\n"
    for k in range(len(jobs)):
        text += f"    - {{from: s{k}, to: left, rate: {host}Gbps, latency: 1us}}\n"
        text += f"    - {{from: right, to: r{k}, rate: {host}Gbps, latency: 1us}}\n"
    text += f"network: {{model: congestion, mtu: {mtu} B, headers: false, control: {control}}}\njobs:\n"
    for k, job in enumerate(jobs):
        text += f"  - {{name: j{k}, iterations: {job.iterations}, start: {job.start_us}us, "
        text += f"weight: {job.weight}, workload: {{kind: periodic, compute: {job.compute_us}us, "
        text += f"size: {job.send_us * gbps * 125}B}}}}\n"
    return text


def run(control: str, jobs: Sequence[Job], gbps: int = 10, mtu: int = 1500) -> list[F64]:
    """Iteration times of each job, ms."""
    done = cosim.run(loads(scenario(control, jobs, gbps, mtu)))
    return [np.array(job.iteration_ps) / PS_PER_MS for job in done.summary.jobs]


def alone(control: str, job: Job, gbps: int = 10, mtu: int = 1500) -> float:
    """Iteration time of a job by itself, ms: c + d, and what the control leaves of the link unused."""
    return float(run(control, [job._replace(start_us=0, iterations=4)], gbps, mtu)[0][-1])


def ideal(jobs: Sequence[Job], slope: float = SLOPE, intercept: float = INTERCEPT) -> list[F64]:
    """Iteration times of each job, ms, where shares are in proportion to slope r + intercept."""
    columns = np.array([job[:4] for job in jobs], np.float64).T
    times = _integrate(columns, slope, intercept)
    return [times[k, : job.iterations] / 1e3 for k, job in enumerate(jobs)]


def _steps(columns: F64, slope: float, intercept: float) -> F64:
    """Steps of 1 us, compute us, send us, start us, iterations by job; a step's rest is not carried on."""
    compute, send, start, iterations = columns
    count = len(compute)
    times = np.zeros((count, int(iterations.max())))
    done = np.zeros(count, np.int64)
    left = start + compute
    begun = start.copy()
    sent = np.zeros(count)
    weight = np.zeros(count)
    now = 0.0
    while (done < iterations).any():
        now += 1.0
        total = 0.0
        for k in range(count):
            weight[k] = 0.0
            if left[k] <= 0.0 and done[k] < iterations[k]:
                weight[k] = slope * sent[k] / send[k] + intercept
            total += weight[k]
        for k in range(count):
            left[k] -= 1.0
            if weight[k] > 0.0:
                sent[k] += weight[k] / total
                if sent[k] >= send[k] - 1e-6:
                    times[k, done[k]] = now - begun[k]
                    done[k] += 1
                    sent[k] = 0.0
                    left[k] = compute[k]
                    begun[k] = now
    return times


_integrate: Any = cast("Any", njit)(_steps)


def shares(over: str, gbps: int, mtu: int, milliseconds: int, step_us: int = 20) -> F64:
    """Under MLTCP, what a flow at r = 1, which comes 20 ms later, has beside one at r = 0; in each step then.

    r is held still: one flow's iteration is a byte long, the other's endless. Shares in proportion to F, 2 to
    1 / 4, are 8 / 9 and 1 / 9.
    """
    built = build(loads(scenario(mltcp(over), [Job(1, 1), Job(1, 1)], gbps, mtu)))
    network = built.network
    assert isinstance(network, CongestionNetwork)
    network.open(built.topology, 0)
    table = flat_table([0], [1], [10**13], reaction_ps=NEVER)
    groups = [
        FlowGroup(
            k, table, np.array([2 * k, 2 * k + 1], np.int32), (k, 0), job=k, coflow=k, coflow_bytes=size
        )
        for k, size in enumerate((1, 10**18))
    ]
    start = np.array([20 * PS_PER_MS, 0], np.int64)
    batch = FlowBatch(groups, np.arange(2, dtype=np.int32), np.zeros(2, np.int64), start, start)
    found: list[float] = []
    now = 0
    while now < (20 + milliseconds) * PS_PER_MS:
        now = network.advance(batch, now + step_us * PS_PER_US).granted_ps
        batch = FlowBatch()
        rates = network._fluid.conns["rate"][:2].astype(np.float64)
        if now > start[0]:
            found.append(float(rates[0] / max(rates.sum(), 1.0)))
    network.close()
    return np.array(found)
