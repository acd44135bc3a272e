"""Plans: chunks, phases, queues, and that phases over dimensions add up to the collective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim.errors import AlgorithmError
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.direct import Direct
from cosim.pattern.double_binary_tree import DoubleBinaryTree
from cosim.pattern.halving_doubling import HalvingDoubling
from cosim.pattern.plan import Plan
from cosim.pattern.planner import Planner
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import REDUCE, Collective

AR, AG, RS, A2A = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
)
MIXED = (RingAlgorithm(), Direct(), HalvingDoubling())
DIMS = (3, 2, 4)


def plan(collective: Collective, size: int, dims: tuple[int, ...], **settings: Any) -> Plan:
    config = CollectiveConfig(**settings)
    return Planner(config).plan(collective, int(np.prod(dims)), size, dims=dims)


def moved(plan: Plan, start: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Replay one chunk's phases on real vectors: float64[N, size] in, what each rank has out.

    A phase moves *pieces*: the vector a rank enters with is cut evenly into the phase's chunk positions.
    """
    held = [row.copy() for row in start]
    for phase in plan.chunks[0]:
        t = phase.template
        for group in phase.groups:
            n = len(group)
            gathers = t.collective is AG
            mine = [held[rank] for rank in group]
            if t.collective is A2A:
                parts = t.num_chunks // n
                at_rank = {
                    (r, r * parts + i): piece
                    for r in range(n)
                    for i, piece in enumerate(pieces(mine[r], parts))
                }
            elif gathers:
                at_rank = {
                    (r, c): piece
                    for r in range(n)
                    for c, piece in zip(
                        np.flatnonzero(t.owner == r).tolist(),
                        pieces(mine[r], int((t.owner == r).sum())),
                        strict=True,
                    )
                }
            else:
                at_rank = {
                    (r, c): piece for r in range(n) for c, piece in enumerate(pieces(mine[r], t.num_chunks))
                }
            for block in range(len(t.block_repeat)):
                for repetition in range(int(t.block_repeat[block])):
                    for row in range(int(t.block_row[block]), int(t.block_row[block + 1])):
                        for i in range(int(t.chunk_count[row]) if t.action[row] else 0):
                            c = (int(t.chunk[row]) + repetition * int(t.chunk_step[row]) + i) % t.num_chunks
                            value = at_rank[int(t.src[row]), c]
                            to = int(t.dst[row]), c
                            at_rank[to] = at_rank[to] + value if t.action[row] == REDUCE else value
            for r, rank in enumerate(group):
                if t.collective is RS:
                    keep = np.flatnonzero(t.owner == r)
                elif t.collective is A2A:
                    # By source; the owner of a position is its destination.
                    keep = np.flatnonzero(t.owner == r)
                else:
                    keep = np.arange(t.num_chunks)
                held[rank] = np.concatenate([at_rank[r, int(c)] for c in keep])
    return np.stack(held)


def pieces(vector: np.ndarray[Any, Any], parts: int) -> list[np.ndarray[Any, Any]]:
    return np.split(vector, parts)


@pytest.mark.parametrize("optimization", ["local_bw_aware", "baseline"])
def test_all_reduce_over_dimensions_is_the_sum_everywhere(optimization: str) -> None:
    made = plan(AR, 24, DIMS, all_reduce=MIXED, optimization=optimization)
    start = np.random.default_rng(1).integers(0, 1000, (24, 24)).astype(float)
    assert (moved(made, start) == start.sum(axis=0)).all()


def test_reduce_scatter_over_dimensions_leaves_each_part_of_the_sum_with_one_rank() -> None:
    made = plan(RS, 24, DIMS, reduce_scatter=MIXED)
    start = np.random.default_rng(1).integers(0, 1000, (24, 24)).astype(float)
    end = moved(made, start)
    assert end.shape == (24, 1)
    assert sorted(end[:, 0]) == sorted(start.sum(axis=0))


def test_all_gather_over_dimensions_brings_everything_to_everyone() -> None:
    made = plan(AG, 1, DIMS, all_gather=MIXED)
    end = moved(made, np.arange(24.0)[:, None])
    assert (np.sort(end, axis=1) == np.arange(24.0)).all()
    assert [phase.template.size_bytes for phase in made.chunks[0]] == [1, 4, 8]


def test_local_bw_aware_all_reduce_shrinks_on_the_way_in_and_grows_on_the_way_back() -> None:
    made = plan(AR, 2400, DIMS, all_reduce=(RingAlgorithm(), RingAlgorithm(), RingAlgorithm()))
    assert [
        (phase.template.collective, phase.template.num_ranks, phase.template.size_bytes, phase.queue)
        for phase in made.chunks[0]
    ] == [(RS, 3, 2400, 0), (RS, 2, 800, 1), (AR, 4, 400, 2), (AG, 2, 400, 1), (AG, 3, 800, 0)]
    # The way back runs the other way round.
    way = [int(phase.template.dst[phase.template.num_ranks]) for phase in made.chunks[0]]
    assert way == [1, 1, 1, 1, 2]
    assert made.num_queues == 3
    assert made.algorithm == "ring+ring+ring"


def test_groups_of_a_phase_differ_in_its_dimension_only() -> None:
    made = plan(A2A, 240, DIMS, all_to_all=(Direct(), Direct(), Direct()))
    assert [phase.groups[0].tolist() for phase in made.chunks[0]] == [[0, 1, 2], [0, 3], [0, 6, 12, 18]]
    for phase in made.chunks[0]:
        assert sorted(phase.groups.reshape(-1).tolist()) == list(range(24))
        assert phase.template.size_bytes == 240


def test_dimensions_of_one_rank_are_skipped() -> None:
    made = plan(AR, 100, (1, 4, 1), all_reduce=(RingAlgorithm(), RingAlgorithm(), RingAlgorithm()))
    assert [phase.template.num_ranks for phase in made.chunks[0]] == [4]
    assert made.chunks[0][0].queue == 1


def test_chunks_add_up_in_exact_sizing_and_differ_by_a_byte() -> None:
    made = plan(AR, 1003, (4,), splits=4)
    sizes = [chunk[0].template.size_bytes for chunk in made.chunks]
    assert sum(sizes) == 1003
    assert max(sizes) - min(sizes) == 1
    assert len(plan(AR, 2, (4,), splits=4).chunks) == 2


def test_chunks_in_floor_sizing_are_astra_sims() -> None:
    def sizes(collective: Collective, size: int, splits: int) -> list[int]:
        made = plan(collective, size, (8,), splits=splits, sizing="floor")
        return [chunk[0].template.size_bytes for chunk in made.chunks]

    assert sizes(AR, 1024, 4) == [256] * 4
    assert sizes(AR, 1025, 4) == [256] * 5  # the remainder makes a chunk as large as the others
    assert sizes(AR, 16, 4) == [8] * 4  # at least one byte a rank
    assert sizes(AR, 0, 4) == [8] * 4  # even of nothing
    assert sizes(AG, 16, 4) == [4] * 4  # but not for an all-gather
    with pytest.raises(AlgorithmError, match="splits to 2 or less"):
        sizes(AG, 2, 4)  # ASTRA-sim never ends with chunks of nothing


def test_queues_and_active_chunks() -> None:
    made = plan(
        AR, 4096, (4, 4), all_reduce=(RingAlgorithm(), RingAlgorithm()), splits=4, queues=4, active_chunks=8
    )
    assert made.active == 2
    assert made.num_queues == 8
    assert [[phase.queue for phase in chunk] for chunk in made.chunks] == [[0, 4, 2], [1, 5, 3]] * 2
    other = plan(
        AG, 4096, (4, 4), all_gather=(RingAlgorithm(), RingAlgorithm()), splits=4, queues=4, active_chunks=3
    )
    assert other.active == 1
    assert [[phase.queue for phase in chunk] for chunk in other.chunks] == [[4 + i, i] for i in range(4)]
    assert [int(chunk[0].template.dst[4]) for chunk in other.chunks] == [1, 1, 3, 3]


def test_the_next_operation_goes_on_with_the_queue_and_tree_whose_turn_it_is() -> None:
    config = CollectiveConfig(all_reduce=DoubleBinaryTree(), all_gather=RingAlgorithm(), splits=3, queues=2)
    planner = Planner(config)
    gather = planner.plan(AG, 8, 4096)
    again = planner.plan(AG, 8, 4096, turn=gather.turn)
    assert [chunk[0].queue for made in (gather, again) for chunk in made.chunks] == [0, 1, 0, 1, 0, 1]
    assert planner.plan(AG, 8, 4096, turn=again.turn) is gather  # even: all as at the beginning
    first = planner.plan(AR, 8, 4096, turn=gather.turn)
    second = planner.plan(AR, 8, 4096, turn=first.turn)
    roots = [int(chunk[0].template.dst[:-8][-1]) for made in (first, second) for chunk in made.chunks]
    assert roots[0::2] == [roots[0]] * 3
    assert roots[1::2] == [roots[1]] * 3
    assert roots[0] != roots[1]


def test_chunks_of_a_double_binary_tree_alternate() -> None:
    made = plan(AR, 4096, (8,), all_reduce=DoubleBinaryTree(), splits=4)
    roots = [int(chunk[0].template.dst[:-8][-1]) for chunk in made.chunks]
    assert roots[0] == roots[2] != roots[1] == roots[3]
    assert made.chunks[0][0].template is made.chunks[2][0].template


def test_plans_and_templates_are_cached() -> None:
    planner = Planner(CollectiveConfig(splits=4))
    first = planner.plan(AR, 8, 4096)
    assert planner.plan(AR, 8, 4096) is first
    assert first.chunks[0][0].template is first.chunks[1][0].template


def test_a_group_of_one_has_an_entry_and_an_exit() -> None:
    for collective in Collective:
        made = Planner().plan(collective, 1, 1000)
        assert made.chunks[0][0].template.num_flows == 2
        assert made.chunks[0][0].template.num_messages == 0


def test_mistakes_are_refused_with_what_would_be_right() -> None:
    two = (RingAlgorithm(), RingAlgorithm())
    with pytest.raises(AlgorithmError, match=r"lists 2 algorithms \(ring, ring\), but there are 3 dim"):
        plan(AR, 100, DIMS, all_reduce=two)
    with pytest.raises(AlgorithmError, match=r"isn't a full grid[\s\S]*name one algorithm"):
        Planner(CollectiveConfig(all_reduce=two)).plan(AR, 6, 100)
    with pytest.raises(AlgorithmError, match=r"power of two[\s\S]*all_reduce over 6 ranks can be carried by"):
        plan(AR, 100, (4, 6), all_reduce=(RingAlgorithm(), HalvingDoubling()))
    with pytest.raises(AlgorithmError, match="don't multiply"):
        Planner().plan(AR, 6, 100, dims=(2, 2))
    with pytest.raises(AlgorithmError, match="can't be meant"):
        Planner().plan(AR, 0, 100)


def test_settings_that_cannot_matter_are_named() -> None:
    idle = CollectiveConfig(active_chunks=2, queues=2, optimization="baseline").idle_settings()
    assert [name for name, _ in idle] == ["active_chunks", "queues", "optimization"]
    assert CollectiveConfig(active_chunks=9, splits=4).idle_settings()[0][0] == "active_chunks"
    idle = CollectiveConfig(all_reduce=(RingAlgorithm(bidirectional=True), RingAlgorithm())).idle_settings()
    assert idle[0][0] == "all_reduce.0.bidirectional"
    assert not CollectiveConfig(splits=4, active_chunks=2).idle_settings()


def test_names_options_and_lists_are_understood() -> None:
    config = CollectiveConfig.model_validate(
        {
            "all_reduce": [{"algorithm": "ring", "channels": 2}, "halvingDoubling"],
            "all_to_all": "direct4",
            "endpoint_delay": "10ns",
            "reduction_rate": "1600GB/s",
        }
    )
    assert config.all_reduce == (RingAlgorithm(channels=2), HalvingDoubling())
    assert config.all_to_all == Direct(window=4)
    assert config.costs.endpoint_delay_ps == 10_000
    assert config.costs.reduction_ps(65536) == 120_000
    with pytest.raises(ValueError, match="halving_doubling"):
        CollectiveConfig.model_validate({"all_reduce": "halving_doublin"})
    with pytest.raises(ValueError, match="chanels"):
        CollectiveConfig.model_validate({"all_reduce": {"algorithm": "ring", "chanels": 2}})
