"""Fast-forward: completions and counts with it beside those of the same session without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cosim.errors import RefusedError, ScenarioError
from cosim.experiment.scenario import loads
from cosim.units import NEVER
from tests.adapters.ns3_worlds import US, star
from tests.adapters.rdma_worlds import Flow, Ran, network, run

ROUNDS = 6
APART = 5_000 * US
UNMARKED: dict[str, Any] = {"control": "dcqcn", "ecn_min": "2 MB"}
"""DCQCN that nothing is drawn for and that stays at full rate: after a round it is as before, to the bit."""


def rounds(seed: int) -> tuple[list[Flow], list[int]]:
    """The same flows again and again, each round begun in a quiet network; the last is not quite the same."""
    draw = np.random.default_rng(seed)
    pairs = [(int(a), int(b)) for a, b in draw.integers(0, 6, (30, 2)) if a != b][:12]
    sizes = draw.integers(1, 400_000, len(pairs))
    starts = np.sort(draw.integers(0, 40 * US, len(pairs)))
    flows: list[Flow] = []
    start_ps: list[int] = []
    for turn in range(ROUNDS):
        for k, ((src, dst), size, start) in enumerate(zip(pairs, sizes, starts, strict=True)):
            if turn == ROUNDS - 1 and k == 5:
                continue
            flows.append((src, dst, int(size) + (turn == ROUNDS - 1 and k == 9)))
            start_ps.append(turn * APART + int(start))
    return flows, start_ps


def both(seed: int, control: Any, steps_ps: Sequence[int] = (NEVER,), **wanted: Any) -> tuple[Ran, Ran]:
    """The same session without and with it."""
    flows, start_ps = rounds(seed)
    given: dict[str, Any] = {
        "start_ps": start_ps,
        "one_job": True,
        "steps_ps": steps_ps,
        "mtu": 4096,
        **wanted,
    }
    plain = run(star(6), flows, control, **given)
    return plain, run(star(6), flows, control, **given, fast_forward="exact")


def same_counts(plain: Ran, quick: Ran) -> None:
    """Bytes, marks, drops, pauses and every percentile of queues."""
    assert np.array_equal(plain.link_bytes, quick.link_bytes)
    for name, values in plain.statistics.extra.items():
        assert np.array_equal(values, quick.column(name)), name
    assert plain.statistics.busy_ps.sum() == quick.statistics.busy_ps.sum()


@pytest.mark.parametrize("control", ["dcqcn", "dctcp", "fixed", "hpcc", "swift", "timely"])
def test_exact_changes_no_completion_and_no_count(control: str) -> None:
    plain, quick = both(1, control)
    assert quick.end_ps == plain.end_ps
    same_counts(plain, quick)


def test_exact_recalls_what_is_the_same() -> None:
    """Of six rounds the first, the second, which finds used connections, and the last are simulated."""
    plain, quick = both(1, **UNMARKED)
    assert quick.end_ps == plain.end_ps
    same_counts(plain, quick)
    assert quick.statistics.events < 0.52 * plain.statistics.events


def test_what_is_drawn_is_not_recalled() -> None:
    """Marks between two thresholds are drawn, and drawn anew in each round."""
    plain, quick = both(2, "dcqcn", ecn_min="8 kB", ecn_max="400 kB", ecn_probability=0.5)
    assert plain.column("marks").sum() > 0
    assert quick.end_ps == plain.end_ps
    same_counts(plain, quick)


def test_a_phase_broken_off_anywhere_is_simulated_after_all() -> None:
    """Whoever asks for counts amid a phase has them of that moment, and what follows is as without."""
    steps = [*(turn * APART + at * US for turn in range(ROUNDS) for at in (0, 7, 31, 44, 60, 400)), NEVER]
    plain, quick = both(3, **UNMARKED, steps_ps=steps)
    assert quick.end_ps == plain.end_ps
    same_counts(plain, quick)


def test_losses_pauses_and_failures_are_as_without() -> None:
    failures = [{"link": 3, "down": "20us", "up": "300us"}]
    plain, quick = both(4, **UNMARKED, failures=failures, rto="400us")
    assert quick.end_ps == plain.end_ps
    same_counts(plain, quick)
    assert quick.column("recalled_bytes").sum() > 0
    plain, quick = both(4, "fixed", buffer="60 kB", mtu=1500)
    assert plain.column("pause_ps").sum() > 0
    assert quick.end_ps == plain.end_ps
    same_counts(plain, quick)


def long_rounds(control: str) -> tuple[Ran, Ran, NDArray[np.float64]]:
    """Long messages, two to one endpoint, three times and each time a little otherwise; their errors."""
    flows = [(k, 3 + k % 2, 40_000_000) for k in range(3)] * 3
    start_ps = [turn * 20_000 * US + (k + turn) % 3 * US for turn in range(3) for k in range(3)]
    given: dict[str, Any] = {"start_ps": start_ps, "one_job": True}
    plain = run(star(6), flows, control, **given)
    quick = run(star(6), flows, control, **given, fast_forward="1%")
    return plain, quick, (np.array(quick.end_ps) - start_ps) / (np.array(plain.end_ps) - start_ps) - 1


@pytest.mark.parametrize("control", ["dcqcn", "dctcp", "hpcc", "swift", "timely"])
def test_completions_are_within_the_tolerance(control: str) -> None:
    """Rates that drift, or that timers change, are not taken to have settled."""
    _, _, error = long_rounds(control)
    assert np.abs(error).max() < 0.01


def test_settled_rates_are_leapt_over_and_near_phases_recalled() -> None:
    plain, quick, error = long_rounds("fixed")
    assert np.abs(error).max() < 0.001
    assert quick.statistics.events < 0.05 * plain.statistics.events
    assert quick.column("leapt_bytes").sum() > 100e6
    assert quick.column("recalled_bytes").sum() > 400e6
    assert 0 < quick.column("fast_forward_error_bytes").sum() < 0.01 * quick.link_bytes[-1].sum()
    np.testing.assert_allclose(quick.link_bytes[-1], plain.link_bytes[-1], rtol=0.01)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{model: ns3_rdma, control: {kind: mltcp, over: dcqcn}, fast_forward: exact}", "MLTCP"),
        ("{model: ns3_rdma, control: swift, routing: spray, fast_forward: exact}", "one path"),
        ("{model: ns3_rdma, control: swift, fast_forward: quick}", "fast_forward"),
    ],
)
def test_what_it_cannot_be_used_with_is_refused(text: str, says: str) -> None:
    scenario = "topology: {kind: switch, endpoints: 2, rate: 1Gbps, latency: 1us}\nnetwork: %s\njobs: []\n"
    with pytest.raises(ScenarioError, match=says):
        loads(scenario % text)


def test_tolerances_out_of_range_are_refused() -> None:
    remote = network(fast_forward="50%")
    with pytest.raises(RefusedError, match=r"fast_forward is 0\.5; it takes a number from"):
        remote.open(star(2))
    remote.close()
