"""A fabric's numbers, set by what nccl-tests printed: ``cosim fit SCENARIO --nccl-tests FILE``.

Two numbers, ``rate`` and ``step``: Gauss-Newton on the logarithms of times, within their bounds. A number
that moves no measured time by a tenth of what it is changed by isn't fitted, and that is said. Which way a
size goes is chosen again each time, as NCCL would; ``declared`` stays that of the scenario's fabric.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError
from cosim.experiment.run import run
from cosim.experiment.scenario import Job, Scenario
from cosim.pattern.template import Collective
from cosim.topology.contract import TopologySpec
from cosim.topology.host_shape import FABRICS, FabricCosts
from cosim.topology.scale_up import host_shape
from cosim.units import PS_PER_S, PS_PER_US, format_size, format_time

F64 = NDArray[np.float64]
_MOST_SIZES, _ROUNDS, _LEAST_BYTES = 12, 6, 1024
_STEPS = (0.03, 2 * PS_PER_US)
"""By how much rate and step are moved, to see what they do."""
_FELT = 0.1
_MOST_STEP_PS = 500 * PS_PER_US


@dataclass(frozen=True, slots=True)
class NcclTest:
    """What a test of nccl-tests printed: its ranks, how many hosts they are on, (bytes, seconds) of each size
    out of place; bytes as nccl-tests count them, of the whole buffer.
    """

    collective: Collective
    ranks: int
    hosts: int
    times: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class FittedFabric:
    """A fabric as the tests have it, (bytes, measured, before, after) in seconds of each size, what no size
    tells.
    """

    fabric: FabricCosts
    rows: tuple[tuple[str, int, float, float, float], ...]
    untold: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{'size':>24s} {'measured':>12s} {'before':>12s} {'after':>12s}"]
        off: list[tuple[float, float]] = []
        for name, size, measured, before, after in self.rows:
            times = (f"{format_time(round(one * PS_PER_S)):>12}" for one in (measured, before, after))
            lines.append(f"{name + ' ' + format_size(size):>24s} {' '.join(times)}")
            off.append((abs(before / measured - 1), abs(after / measured - 1)))
        errors = np.mean(off, axis=0)
        lines.append(f"mean error {errors[0]:.1%} before, {errors[1]:.1%} after")
        lines += [f"not told by these sizes, and left as it was: {one}" for one in self.untold]
        step = format_time(self.fabric.step).replace(" ", "")
        declared = format_time(self.fabric.declared).replace(" ", "")
        lines.append(f"fabric: {{rate: {self.fabric.rate:.3g}, step: {step}, declared: {declared}}}")
        return "\n".join(lines)


def fit_fabric(scenario: Scenario, tests: Sequence[NcclTest]) -> FittedFabric:
    """The ``rate`` and ``step`` of the scenario's fabric with which its topology takes what was measured.

    Raises
    ------
    InputError
        Tests that aren't of that topology, or inside one host.
    """
    spec = scenario.topology
    if not isinstance(spec, TopologySpec):
        raise InputError("the scenario's topology was made by Python: it names no fabric")
    for test in tests:
        _check(scenario, spec, test)
    rows = [(test, *row) for test in tests for row in _spread(test)]
    measured = np.log([seconds for _, _, seconds in rows])
    start = spec.costs_between_hosts() or FABRICS["infiniband-ndr"]

    def times(costs: FabricCosts) -> F64:
        return np.log([_seconds(scenario, spec, costs, test, size) for test, size, _ in rows])

    best, before = start, times(start)
    now, told = before, [True, True]
    for turn in range(_ROUNDS):
        moved = np.array(
            [(times(_moved(best, index, by)) - now) / by for index, by in enumerate(_STEPS)]
        ).T * np.array(_STEPS)
        if turn == 0:
            told = [
                bool(np.abs(moved[:, 0]).max() > _FELT * _STEPS[0] / best.rate),
                bool(np.abs(moved[:, 1]).max() > 0.01),
            ]
        if not any(told):
            break
        use = [index for index in (0, 1) if told[index]]
        change = np.linalg.lstsq(moved[:, use], measured - now, rcond=None)[0]
        for part in (1.0, 0.5, 0.25):
            tried = best
            for index, one in zip(use, change, strict=True):
                tried = _moved(tried, index, part * float(one) * _STEPS[index])
            then = times(tried)
            if np.abs(measured - then).mean() < np.abs(measured - now).mean() * 0.999:
                best, now = tried, then
                break
        else:
            break
    names = ("rate: no size is large enough", "step: no size is small enough")
    table = [
        (test.collective.value, size, seconds, float(np.exp(old)), float(np.exp(new)))
        for (test, size, seconds), old, new in zip(rows, before, now, strict=True)
    ]
    return FittedFabric(
        best, tuple(table), tuple(n for n, known in zip(names, told, strict=True) if not known)
    )


def _check(scenario: Scenario, spec: TopologySpec, test: NcclTest) -> None:
    topology = spec.build(scenario.context)
    shape = host_shape(topology, spec)
    if shape is None:
        raise InputError(f"{topology.name} has no hosts with NICs: there is no fabric to fit")
    if test.ranks > topology.num_endpoints:
        raise InputError(f"the test has {test.ranks} ranks, and the topology {topology.num_endpoints} GPUs")
    hosts = -(-test.ranks // shape.gpus)
    if hosts == 1:
        raise InputError(
            f"the test's {test.ranks} ranks are in one host of {shape.gpus} GPUs: none meets the fabric"
        )
    if test.ranks % shape.gpus or hosts != test.hosts:
        raise InputError(
            f"the test has {test.ranks} ranks on {test.hosts} hosts; on hosts of {shape.gpus} GPUs, as the "
            f"topology has them, it would be {test.hosts * shape.gpus} ranks"
        )


def _spread(test: NcclTest) -> list[tuple[int, float]]:
    """A dozen of its sizes, from 1 KiB on."""
    rows = [row for row in test.times if row[0] >= _LEAST_BYTES]
    if not rows:
        raise InputError(f"no size of {_LEAST_BYTES} bytes or more in the test")
    picked = np.unique(np.linspace(0, len(rows) - 1, _MOST_SIZES).round().astype(int))
    return [rows[index] for index in picked]


def _moved(costs: FabricCosts, index: int, by: float) -> FabricCosts:
    if index == 0:
        return costs.model_copy(update={"rate": min(max(costs.rate + by, 0.1), 1.0)})
    return costs.model_copy(update={"step": min(max(round(costs.step + by), 0), _MOST_STEP_PS)})


def _seconds(
    scenario: Scenario, spec: TopologySpec, costs: FabricCosts, test: NcclTest, size_bytes: int
) -> float:
    size = size_bytes // test.ranks if test.collective is Collective.ALL_GATHER else size_bytes
    workload = {"kind": "collective", "collective": test.collective.value, "size": size, "ranks": test.ranks}
    changes = {
        "topology": spec.model_copy(update={"fabric": costs}),
        "jobs": (Job.model_validate({"workload": workload}),),
        "events": (),
        "processes": (),
    }
    return run(scenario.model_copy(update=changes)).records.end_ps / PS_PER_S
