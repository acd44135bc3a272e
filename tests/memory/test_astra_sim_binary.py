"""Remote memory against ASTRA-sim's own binary, on what we export: every access, to the nanosecond."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.errors import LaunchError
from cosim.experiment.translate import translate
from cosim.formats.astra_sim.run import binary
from tests.memory.astra_rules import Chain
from tests.memory.worlds import load_ends_ns, random_chains, run, scenario

KINDS: dict[str, dict[str, Any]] = {
    "pool": {"kind": "pool"},
    "per_npu": {"kind": "per_npu"},
    "per_node": {"kind": "per_node", "npus": 3},
}
GB = 10**9
MICROSECOND = 1000
"""What ASTRA-sim reads durations of computation in."""


@pytest.fixture(autouse=True)
def _installed() -> None:
    try:
        binary("unaware")
    except LaunchError as error:
        pytest.skip(str(error).replace("\n  ", "; "))


def quiet(text: str) -> None:
    del text


def both(chains: list[Chain], memory: dict[str, Any], folder: Path) -> tuple[list[list[int]], ...]:
    """When each rank's accesses end, ns: ASTRA-sim's run of the export, and ours."""
    backend = {"kind": "astra-sim", "backend": "unaware"}
    theirs = translate(scenario(chains, memory), backend, folder).run(quiet).records
    loads = [(theirs.ops.rank == rank) & (theirs.ops.op % 2 == 1) for rank in range(len(chains))]
    ours = run(chains, memory)
    return (
        [[int(end) // 1000 for end in np.sort(theirs.ops.end_ps[load])] for load in loads],
        [load_ends_ns(ours, rank) for rank in range(len(chains))],
    )


@pytest.mark.parametrize(
    ("kind", "ends"),
    [
        ("pool", [10_001_000, 20_002_000, 30_003_000, 40_004_000]),
        ("per_npu", [10_001_000] * 4),
        ("per_node", [10_001_000, 20_002_000, 30_003_000, 10_001_000]),
    ],
)
def test_four_accesses_of_a_gigabyte_at_once(kind: str, ends: list[int], tmp_path: Path) -> None:
    theirs, ours = both(
        [[(MICROSECOND, GB)]] * 4, {**KINDS[kind], "latency": "1us", "rate": "100GB/s"}, tmp_path
    )
    assert sorted(end for (end,) in theirs) == sorted(end + MICROSECOND for end in ends)
    assert theirs == ours


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_that_compute_and_access_in_turns(kind: str, tmp_path: Path) -> None:
    draw = random.Random(7)
    for world in range(8):
        latency, rate = draw.randrange(1, 2000), draw.randrange(1, 500)
        memory = {**KINDS[kind], "latency": f"{latency}ns", "rate": f"{rate}GB/s"}
        theirs, ours = both(random_chains(draw, MICROSECOND), memory, tmp_path / str(world))
        assert theirs == ours
