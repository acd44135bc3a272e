"""Every scenario gives the answer that stands beside it, whoever releases the messages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import cosim
from tests.examples.answers import (
    DESIGNS,
    SCENARIOS,
    SHORT,
    SWEEPS,
    answer,
    answer_file,
    design_answer,
    missing_input,
    missing_simulator,
    run_sweep_file,
    sweep_answer,
    without_release,
)

DEAR = {
    "async-tensor-parallel", "background", "cc-shootout", "closed-loop-ns3", "cluster-queue", "comet",
    "comet-clusters", "compiled-llama", "failures-54-days", "fsdp-llama", "host-stalls", "hybrid-ns3",
    "in-network", "incast", "libra", "link-failure", "llama3-70b", "local-sgd", "many-flows", "one-h100",
    "pipedream-vgg16", "profiled-llama", "requests", "serving", "simai-sharing", "slow-link",
    "why-not-synthetic",
}  # fmt: skip
"""What takes 1 CPU-second or more where the engine releases messages: then its answer is a slow test."""
DEAREST = {"hybrid-ns3"}
"""What takes seconds either way, and is tested in small (test_hybrid_scenarios)."""
WHOLE = {
    ("comet-clusters", "network"),
    ("comet-clusters", "engine"),  # comet is like it
    ("host-stalls", "network"),
    ("pipeline-schedules", "network"),
    ("pipeline-schedules", "engine"),  # minutes; async-tensor-parallel and llama3-70b are like it
}
"""Parts of sweeps that take seconds: the whole sweep is a slow test."""


def released(paths: Sequence[Path]) -> list[object]:
    """Each scenario or sweep, released by the network and by the engine."""
    return [
        pytest.param(
            path,
            release,
            id=f"{path.stem}-{release}",
            marks=[pytest.mark.slow] * (path.stem in (DEAR if release == "engine" else DEAREST)),
        )
        for path in paths
        for release in ("network", "engine")
        if (path.stem, release) not in WHOLE
    ]


@pytest.mark.parametrize(("scenario", "release"), released(SCENARIOS))
def test_a_scenario_gives_its_answer_with_either_release(scenario: Path, release: str) -> None:
    if missing := missing_simulator(scenario):
        pytest.skip(f"it needs ns-3: apt-get install -y {missing}")
    printed = answer_file(scenario).read_text(encoding="utf-8")
    assert without_release(answer(scenario, release)) == without_release(printed)


@pytest.mark.parametrize(("sweep", "release"), released(SWEEPS))
def test_a_part_of_a_sweep_gives_that_part_of_its_answer(sweep: Path, release: str) -> None:
    if missing := missing_input(sweep):
        pytest.skip(missing)
    _, trials = run_sweep_file(sweep, [*SHORT[sweep.stem], f"scenario.release={release}"])
    printed = answer_file(sweep).read_text(encoding="utf-8").splitlines()
    found = trials.splitlines()
    assert len(found) > 1
    assert [line for line in found if line not in printed] == []


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS, ids=lambda sweep: sweep.stem)
def test_a_whole_sweep_gives_its_whole_answer(sweep: Path) -> None:
    if missing := missing_input(sweep):
        pytest.skip(missing)
    assert sweep_answer(sweep) == answer_file(sweep).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.stem)
def test_a_part_of_a_design_gives_that_part_of_its_answer(design: Path) -> None:
    part = [
        "only.fabric=[fat-tree]",
        "only.rate=[800Gbps]",
        "what_if={}",
        "executor={kind: local, workers: 1}",
    ]
    _, _, exact = design_answer(design, part).partition("\nexact\n")
    printed = answer_file(design).read_text(encoding="utf-8").splitlines()
    assert len(exact.splitlines()) == 3
    assert [line for line in exact.splitlines() if line not in printed] == []


def iterations(name: str, settings: dict[str, object]) -> list[list[float]]:
    (path,) = (path for path in SCENARIOS if path.stem == name)
    summary = cosim.run(path, set=settings).summary
    return [[time / 1e9 for time in job.iteration_ps] for job in summary.jobs]


@pytest.mark.parametrize("release", ["network", "engine"])
def test_equal_weights_stay_in_each_others_way(release: str) -> None:
    """c + 2 d = 369 ms for ever."""
    one, two = iterations("unfair-exact", {"release": release, "jobs[0].weight": 1})
    assert one == two == [369.0] * 12


@pytest.mark.parametrize("release", ["network", "engine"])
def test_unequal_weights_slide_apart(release: str) -> None:
    """Each round halves how long the flows still meet: 312, 283.5, 269.25, ... -> 255 = c + d."""
    one, two = iterations("unfair-exact", {"release": release})
    expected = [255 + 114 / 2 ** (n + 1) for n in range(12)]
    assert one == pytest.approx(expected, abs=1e-6)
    assert two == pytest.approx([369.0, *expected[:-1]], abs=1e-6)


@pytest.mark.parametrize("release", ["network", "engine"])
def test_jobs_that_want_too_much_cannot_slide_apart(release: str) -> None:
    """c = 50 ms, d = 100 ms, weights 2:1: 200, 175, 175, 200, ... (mean 187.5) and 250."""
    one, two = iterations("unfair-exact-overlong", {"release": release})
    assert one[:4] == [200.0, 175.0, 175.0, 200.0]
    assert sum(one[:12]) / 12 == 187.5
    assert two == [250.0] * len(two)


def test_equal_jobs_that_want_too_much_take_turns() -> None:
    one, two = iterations("unfair-exact-overlong", {"jobs[0].weight": 1, "jobs[0].iterations": 10})
    assert one == two == [250.0] * 10
