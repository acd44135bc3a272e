"""PipeDream's partitioner against brute force, its released program's figures, and closed forms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosim.errors import WorkloadError
from cosim.units import PS_PER_MS
from cosim.workload.layers.graph_file import read_graph
from cosim.workload.layers.partition import Equation, Level, parse_levels, partition, predicted_s
from cosim.workload.layers.plan import PlannedStage, StagePlan, written_plan
from cosim.workload.layers.profile import LayerProfile, ProfiledLayer, in_order
from tests.inputs import find, needs

FLAT = [Level(16, 10e9)]
MACHINES = [Level(4, 16e9 * 8), Level(4, 10e9)]
layers = st.builds(
    ProfiledLayer,
    st.just("layer"),
    st.integers(0, 50).map(lambda ms: ms * PS_PER_MS),
    st.integers(0, 50).map(lambda ms: ms * PS_PER_MS),
    st.integers(0, 20).map(lambda mb: mb * 10**6),
    st.integers(0, 20).map(lambda mb: mb * 10**6),
)


def profile(name: str) -> LayerProfile:
    return read_graph(find(f"pipedream/{name}.txt"))


def every_plan(first: int, count: int, workers: int) -> Iterator[tuple[PlannedStage, ...]]:
    for last in range(first + 1, count + 1):
        for own in range(1, workers + 1):
            stage = PlannedStage(first, last, own)
            if last == count and own == workers:
                yield (stage,)
            for behind in every_plan(last, count, workers - own):
                yield (stage, *behind)


@given(st.lists(layers, min_size=1, max_size=8), st.sampled_from(["paper", "code"]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_brute_force_finds_no_faster_plan(
    some: list[ProfiledLayer], equation: Equation, limited: bool
) -> None:
    chain = LayerProfile("random", tuple(some))
    memory = 60_000_000 if limited else None
    plans = [StagePlan(stages) for stages in every_plan(0, len(chain), 5)]
    fits = [plan for plan in plans if memory is None or max(plan.memory_bytes(chain)) <= memory]
    best = min((predicted_s(chain, plan, 10e9, equation=equation) for plan in fits), default=None)
    if best is None:
        with pytest.raises(WorkloadError, match="no plan on 5 workers fits"):
            partition(chain, [Level(5, 10e9)], equation=equation, memory_bytes=memory)
        return
    found = partition(chain, [Level(5, 10e9)], equation=equation, memory_bytes=memory)
    assert found.minibatch_s == pytest.approx(best, rel=1e-12)
    assert predicted_s(chain, found.plan, 10e9, equation=equation) == pytest.approx(best, rel=1e-12)


@given(st.lists(layers, min_size=2, max_size=6), st.sampled_from(["paper", "code"]))
@settings(max_examples=25, deadline=None)
def test_a_limit_holds_over_levels(some: list[ProfiledLayer], equation: Equation) -> None:
    """What is found fits into the memory, or nothing is; a limit that the free plan keeps changes nothing."""
    chain = LayerProfile("random", tuple(some))
    levels = [Level(2, 80e9), Level(3, 10e9)]
    free = partition(chain, levels, equation=equation)
    most = max(free.plan.memory_bytes(chain))
    # Level by level a stage is asked for as many versions as it may have at most, so that room is needed.
    assert partition(chain, levels, equation=equation, memory_bytes=100 * most + 1).plan == free.plan
    for limit in (most, most // 2, most // 4):
        try:
            found = partition(chain, levels, equation=equation, memory_bytes=limit + 1)
        except WorkloadError:
            continue
        assert max(found.plan.memory_bytes(chain)) <= limit + 1
        assert found.minibatch_s >= free.minibatch_s * (1 - 1e-12)


@needs("pipedream/vgg16.txt")
def test_vgg16_is_cut_as_published() -> None:
    found = partition(profile("vgg16"), FLAT)
    assert found.plan.stages == (PlannedStage(0, 33, 15), PlannedStage(33, 40, 1))
    assert found.minibatch_s == pytest.approx(44.159e-3, rel=1e-9)
    assert found.speedup == pytest.approx(2.350, abs=5e-4)
    free = partition(profile("vgg16"), FLAT, activations=False)
    assert free.plan.stages == (PlannedStage(0, 25, 15), PlannedStage(25, 40, 1))
    assert (free.minibatch_s, free.speedup) == pytest.approx((42.3406e-3, 2.4508), rel=1e-5)
    assert free.data_parallel_s == pytest.approx(103.768e-3, rel=1e-5)


@needs("pipedream/vgg16.txt")
def test_vgg16_takes_what_the_released_program_says() -> None:
    flat, machines = (partition(profile("vgg16"), levels, equation="code") for levels in (FLAT, MACHINES))
    assert (flat.minibatch_s, flat.speedup) == pytest.approx((46.5875e-3, 3.1296), rel=2e-5)
    assert (machines.minibatch_s, machines.speedup) == pytest.approx((43.9723e-3, 2.9913), rel=2e-5)


@needs("pipedream/resnet50.txt")
def test_resnet50_stays_data_parallel() -> None:
    found = partition(profile("resnet50"), FLAT)
    assert len(found.plan.stages) == 1
    assert (found.minibatch_s, found.speedup) == pytest.approx((27.7137e-3, 1.0), rel=1e-5)
    machines = partition(profile("resnet50"), MACHINES, equation="code")
    assert (machines.minibatch_s, machines.speedup) == pytest.approx((28.5905e-3, 1.5476), rel=2e-5)


def chain(*times: int, weights: int = 0, out: int = 0) -> LayerProfile:
    made = (
        ProfiledLayer(f"l{k}", ms * PS_PER_MS, 2 * ms * PS_PER_MS, out, weights) for k, ms in enumerate(times)
    )
    return LayerProfile("chain", tuple(made))


def test_versions_of_a_straight_pipeline_count_down() -> None:
    plan = partition(chain(1, 1, 1, 1), [Level(4, 1e9)], straight=True).plan
    assert plan.versions == (4, 3, 2, 1)
    assert plan.in_flight == 4
    assert StagePlan((PlannedStage(0, 1, 3), PlannedStage(1, 2, 2), PlannedStage(2, 3, 1))).versions == (
        2,
        2,
        1,
    )


def test_memory_counts_weights_and_activations_of_each_version() -> None:
    plan = StagePlan((PlannedStage(0, 2, 1), PlannedStage(2, 3, 1)))
    assert plan.memory_bytes(chain(1, 1, 1, weights=100, out=10)) == (2 * 220, 110)
    with pytest.raises(WorkloadError, match=r"worker of stage 0 needs 440 B for 2 versions"):
        plan.check(chain(1, 1, 1, weights=100, out=10), 2, 400)


def test_what_skips_a_cut_crosses_it_once() -> None:
    """A residual: the first layer's output is read by the second and the fourth."""
    some = [ProfiledLayer(name, 1, 1, size) for name, size in (("a", 1), ("b", 10), ("c", 100), ("d", 1000))]
    made = in_order("residual", [some[3], some[0], some[2], some[1]], [[1, 2], [], [3], [1]])
    assert [one.name for one in made.layers] == ["a", "b", "c", "d"]
    assert made.crossing_bytes.tolist() == [1, 11, 101, 0]


def test_a_plan_by_its_workers_shares_the_computation() -> None:
    plan = written_plan("3-1", chain(1, 1, 1, 1), 4)
    assert plan.stages == (PlannedStage(0, 3, 3), PlannedStage(3, 4, 1))


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([(0, 1, 2), (2, 4, 2)], "layers 1 to 1 are in no stage"),
        ([(0, 3, 2), (2, 4, 2)], "layers 2 to 2 are in two stages"),
        ([(0, 2, 2), (2, 3, 2)], "layers 3 to 3 are in no stage"),
        ([(0, 2, 2), (2, 4, 1)], "3 workers together, not 4"),
        ([(0, 2, 0), (2, 4, 4)], "on 0 workers"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(stages: list[tuple[int, int, int]], said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        StagePlan(tuple(PlannedStage(*one) for one in stages)).check(chain(1, 1, 1, 1), 4)


@pytest.mark.parametrize(
    ("text", "said"),
    [("4@16GB/s,3@10Gbps", "4 x 3 workers are not 16"), ("4", "level '4'"), ("x@1Gbps", "level 'x")],
)
def test_levels_that_do_not_fit_are_refused(text: str, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        parse_levels(text, 16)


def test_plans_that_cannot_be_are_refused() -> None:
    with pytest.raises(WorkloadError, match="5 stages of a worker each, but 4 layers"):
        partition(chain(1, 1, 1, 1), [Level(5, 1e9)], straight=True)
    with pytest.raises(WorkloadError, match="too many to try"):
        partition(chain(1, 1, 1, 1), [Level(10_000, 1e9)])
    with pytest.raises(WorkloadError, match="plan is '3-x'"):
        written_plan("3-x", chain(1, 1), 4)
