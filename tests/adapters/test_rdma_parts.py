"""Fast-forward where the network falls into parts: what mirrors another part is as without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim.topology.graph import Topology
from cosim.units import NEVER
from tests.adapters.ns3_worlds import US, graph
from tests.adapters.rdma_worlds import Flow, Ran, run

RAILS, SIDE = 4, 4
"""So many switches with so many endpoints each, under one more switch."""
UNMARKED: dict[str, Any] = {"control": "dcqcn", "ecn_min": "2 MB"}
"""DCQCN that nothing is drawn for."""


def rails() -> Topology:
    """Endpoint ``rail * SIDE + k``; the switch above is used by whatever goes from rail to rail."""
    first = RAILS * SIDE
    cables = [(rail * SIDE + k, first + rail) for rail in range(RAILS) for k in range(SIDE)]
    cables += [(first + rail, first + RAILS) for rail in range(RAILS)]
    return graph(first, [link for a, b in cables for link in ((a, b, 100.0, US), (b, a, 100.0, US))])


def flows_of(seed: int, *, odd: bool, crossing: bool) -> tuple[list[Flow], list[int]]:
    """Four rounds of the same flows on every rail at the same times, the second within the first.

    ``odd``: in some rounds some rail lacks a flow, or has a longer one; ``crossing``: one goes from rail to
    rail.
    """
    draw = np.random.default_rng(seed)
    pairs = [(int(a), int(b)) for a, b in draw.integers(0, SIDE, (20, 2)) if a != b][:8]
    sizes = draw.integers(1, 400_000, len(pairs)).tolist()
    starts = np.sort(draw.integers(0, 60 * US, len(pairs))).tolist()
    rounds = [0, int(draw.integers(20, 100)) * US, 3000 * US, 6000 * US]
    flows: list[tuple[int, int, int, int]] = []
    for turn, begin in enumerate(rounds):
        other = (int(draw.integers(RAILS)), int(draw.integers(len(pairs))), int(draw.integers(2)))
        for k, ((src, dst), size, start) in enumerate(zip(pairs, sizes, starts, strict=True)):
            for rail in range(RAILS):
                changed = odd and turn > 0 and (rail, k) == other[:2]
                if not (changed and other[2]):
                    flows.append((begin + start, rail * SIDE + src, rail * SIDE + dst, size + 1000 * changed))
    if crossing:
        at = int(draw.integers(0, 3200)) * US
        flows.append((at, int(draw.integers(SIDE)), SIDE + int(draw.integers(SIDE)), 100_000))
    flows.sort(key=lambda flow: flow[0])
    return [flow[1:] for flow in flows], [flow[0] for flow in flows]


def both(
    seed: int, control: Any, *, odd: bool = False, crossing: bool = False, **wanted: Any
) -> tuple[Ran, Ran]:
    """The same session without and with it; ``fast_forward`` is exact where nothing is said."""
    flows, start_ps = flows_of(seed, odd=odd, crossing=crossing)
    how = wanted.pop("fast_forward", "exact")
    given: dict[str, Any] = {"start_ps": start_ps, "one_job": True, "mtu": 4096, **wanted}
    plain = run(rails(), flows, control, **given)
    return plain, run(rails(), flows, control, **given, fast_forward=how)


def the_same(plain: Ran, quick: Ran) -> None:
    """Completions, bytes at the ends of steps, and whatever links measured."""
    assert quick.end_ps == plain.end_ps
    assert np.array_equal(plain.link_bytes, quick.link_bytes)
    for name, values in plain.statistics.extra.items():
        assert np.array_equal(values, quick.column(name)), name
    assert plain.statistics.busy_ps.sum() == quick.statistics.busy_ps.sum()


def test_parts_that_do_the_same_at_the_same_time_are_simulated_once() -> None:
    """One of four rails, in two phases: the third is recalled where queue pairs are as they were."""
    plain, quick = both(1, **UNMARKED)
    the_same(plain, quick)
    assert quick.statistics.events < plain.statistics.events / RAILS
    assert quick.column("recalled_bytes").sum() > 0.75 * plain.link_bytes[-1].sum()


@pytest.mark.parametrize("control", ["dcqcn", "swift"])
def test_a_part_that_does_otherwise_is_simulated_from_its_start(control: str) -> None:
    """A message that is missing, longer or one too many; marks are drawn by DCQCN."""
    plain, quick = both(2, control, odd=True)
    the_same(plain, quick)


def test_parts_that_a_message_joins_are_one_from_then_on() -> None:
    plain, quick = both(3, **UNMARKED, odd=True, crossing=True)
    the_same(plain, quick)


def test_who_asks_for_counts_amid_a_mirrored_phase_has_them_of_that_moment() -> None:
    steps = [*(at * US for at in (7, 31, 44, 90, 400, 3010, 3044, 3090)), NEVER]
    plain, quick = both(4, **UNMARKED, steps_ps=steps)
    the_same(plain, quick)


def test_with_a_tolerance_parts_mirror_while_marks_are_drawn() -> None:
    """Each rail draws its own without; here all have what one of them has."""
    drawn: dict[str, Any] = {"ecn_min": "8 kB", "ecn_max": "400 kB", "ecn_probability": 0.5}
    plain, quick = both(5, "dcqcn", **drawn, fast_forward="1%")
    assert plain.column("marks").sum() > 0
    assert quick.statistics.events < 0.3 * plain.statistics.events
    flows, start_ps = flows_of(5, odd=False, crossing=False)
    rail = np.array([src // SIDE for src, _, _ in flows])
    took = np.array(quick.end_ps) - start_ps
    for one in range(1, RAILS):
        np.testing.assert_array_equal(took[rail == one], took[rail == 0])


@pytest.mark.slow  # what each of them asserts, the tests above do for chosen sessions
@pytest.mark.parametrize("control", ["dcqcn", "dctcp", "fixed", "hpcc", "swift", "timely"])
def test_exact_is_exact_whatever_parts_do(control: str) -> None:
    for seed in range(100, 125):
        draw = np.random.default_rng(seed)
        wanted: dict[str, Any] = {"odd": bool(draw.random() < 0.6), "crossing": bool(draw.random() < 0.4)}
        if control == "dcqcn" and draw.random() < 0.5:
            wanted["ecn_min"] = "2 MB"
        if draw.random() < 0.3:
            wanted["buffer"] = "60 kB"
        if draw.random() < 0.5:
            wanted["steps_ps"] = [*(int(at) * US for at in np.sort(draw.integers(0, 6200, 6))), NEVER]
        the_same(*both(seed, control, **wanted))
