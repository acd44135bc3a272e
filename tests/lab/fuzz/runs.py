"""Scenarios with something changed, run where they are small, and random jobs: held to invariants."""

from __future__ import annotations

import time
from typing import Any

from cosim.experiment.build import Built, build
from cosim.experiment.progress import RunProgress
from cosim.experiment.scenario import Scenario
from cosim.experiment.simulate import simulate
from cosim.protocol.remote import Remote
from tests.lab.fuzz import worlds
from tests.lab.fuzz.invariants import check
from tests.lab.fuzz.scenarios import mutant, read
from tests.lab.fuzz.tally import Target, drawn

PATIENCE_S = 1.0
"""After so long a run is interrupted, and what there is of it looked at."""
_FEW = 20_000
"""Operations of a run, links of a topology, operations of a program, that are tried."""
_SMALL: dict[str, Any] = {
    "topology": {"kind": "ring", "endpoints": 4, "rate": "80Gbps", "latency": "1us"},
    "jobs": [{"workload": {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4MB"}}],
}
_CONGESTION = {"model": "congestion", "control": "dctcp"}


def tried(value: Any) -> None:
    """Build what is small; run what is short, and hold it to the invariants."""
    scenario = read(value)
    if isinstance(scenario.network, Remote) or _is_large(scenario):
        return
    built = build(scenario)
    try:
        if _operations(built) > _FEW or len(built.topology.link_src) > _FEW:
            return
        began = time.monotonic()

        def patience(_: RunProgress) -> None:
            if time.monotonic() - began > PATIENCE_S:
                raise KeyboardInterrupt

        done = simulate(scenario, built, progress=patience, messages=True)
    finally:
        built.network.close()
    check(done.records)
    str(done)


def _is_large(scenario: Scenario) -> bool:
    sizes = [getattr(scenario.topology, "size_about", lambda: 0)()]
    sizes += [getattr(job.workload, "size_about", lambda: 0)() + job.count for job in scenario.jobs]
    return max(sizes) > _FEW and max(sizes) < 10**8  # beyond it, it has to be refused


def _operations(built: Built) -> int:
    return sum(
        job.iterations * len(job.workload.program(rank).operations)
        for job in built.jobs
        for rank in range(min(job.workload.world_size, _FEW))
    )


def targets() -> list[Target]:
    """Shipped ones, and random ones."""
    for network in ("congestion_aware", "congestion_unaware", "fair_share", _CONGESTION):
        tried({**_SMALL, "network": network})  # compiled before any is timed
    return [Target("scenarios, run", drawn(mutant), tried), *worlds.targets()]
