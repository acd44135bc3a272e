"""Custom algorithms from SEND, RECV and COMP nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosim.context import Context
from cosim.errors import AlgorithmError
from cosim.formats.chakra.algorithm import ChakraFiles
from cosim.formats.chakra.custom import RankNodes, custom_template
from cosim.pattern.config import CollectiveConfig
from cosim.pattern.planner import Planner
from cosim.pattern.prove import prove
from cosim.pattern.template import Collective, Template
from tests.inputs import find, needs
from tests.pattern.uncontended import exits_ns

RING = "chakra/custom_ring_allreduce_8npus_1MB"
AR = Collective.ALL_REDUCE


def nodes(*rows: tuple[int, str, int, int, int, tuple[int, ...]]) -> RankNodes:
    """(id, kind, peer, bytes, duration in ns, deps), all with tag 0."""
    return RankNodes.from_columns(
        {
            "id": [row[0] for row in rows],
            "kind": [row[1] for row in rows],
            "peer": [row[2] for row in rows],
            "tag": [0] * len(rows),
            "bytes": [row[3] for row in rows],
            "duration_ps": [row[4] * 1000 for row in rows],
            "deps": [row[5] for row in rows],
        }
    )


def template(*ranks: RankNodes) -> Template:
    made = custom_template("mine", AR, 100, ranks)
    prove(made)
    return made


def took(src: Any, dst: Any, size: Any) -> Any:
    del src, dst
    return (500 + size / 53.6870912).astype(np.int64)


@needs(RING)
def test_astra_sims_shipped_ring_takes_its_time() -> None:
    planner = Planner(CollectiveConfig(all_reduce=ChakraFiles(path=str(find(RING)))))
    made = planner.plan(AR, 8, 1 << 20).chunks[0][0].template
    assert made.num_messages == 8 * 14
    finish = exits_ns(made, np.zeros(8, np.int64), took)
    assert set(finish.tolist()) == {90174}
    with pytest.raises(AlgorithmError, match="is for 8 ranks, and this group has 4"):
        planner.plan(AR, 4, 1 << 20)


def test_a_receive_ends_at_arrival_or_when_it_is_posted() -> None:
    made = template(
        nodes((0, "send", 1, 0, 0, ())),
        nodes((0, "comp", -1, 0, 700, ()), (1, "recv", 0, 0, 0, (0,)), (2, "comp", -1, 0, 10, (1,))),
    )
    assert exits_ns(made, np.zeros(2, np.int64), took).tolist() == [500, 710]
    assert exits_ns(made, np.array([1000, 0]), took).tolist() == [1500, 1510]


def test_computations_run_at_once() -> None:
    made = template(
        nodes(*((i, "comp", -1, 0, 7000, ()) for i in range(5))), nodes((0, "comp", -1, 0, 1, ()))
    )
    assert exits_ns(made, np.zeros(2, np.int64), took).tolist() == [7000, 1]


def test_the_nth_send_meets_the_nth_receive() -> None:
    made = template(
        nodes((5, "send", 1, 0, 0, (4,)), (4, "comp", -1, 0, 100, ()), (9, "send", 1, 0, 0, (5,))),
        nodes((1, "recv", 0, 0, 0, ()), (2, "recv", 0, 0, 0, ()), (3, "comp", -1, 0, 50, (1,))),
    )
    assert exits_ns(made, np.zeros(2, np.int64), took).tolist() == [1100, 1100]


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (
            [nodes((3, "send", 1, 8, 0, ())), nodes((0, "comp", -1, 0, 1, ()))],
            r"rank 0, node 3 \(SEND to rank 1, tag 0\) has no RECV to match: 1 SEND and 0 RECV",
        ),
        (
            [nodes((0, "comp", -1, 0, 1, ())), nodes((7, "recv", 0, 8, 0, ()))],
            r"rank 1, node 7 \(RECV from rank 0, tag 0\) has no SEND to match",
        ),
        (
            [nodes((0, "send", 1, 8, 0, ())), nodes((0, "recv", 0, 16, 0, ()))],
            r"sends 8 bytes, but rank 1, node 0 .* expects 16",
        ),
        (
            [
                nodes((0, "recv", 1, 8, 0, ()), (1, "send", 1, 8, 0, (0,))),
                nodes((0, "recv", 0, 8, 0, ()), (1, "send", 0, 8, 0, (0,))),
            ],
            r"deadlocks: 4 nodes wait for each other for ever\n  rank 0, node 0 .* waits for rank 1, node 1",
        ),
        (
            [nodes((0, "comp", -1, 0, 1, (6,)))],
            r"rank 0, node 0 \(COMP\) waits for node 6, which the rank lacks",
        ),
        ([nodes((0, "send", 4, 8, 0, ()))], r"no such other rank; there are 1"),
        ([nodes((0, "comp", -1, 0, 1, ()), (0, "comp", -1, 0, 1, ()))], r"two nodes of number 0"),
    ],
)
def test_what_cannot_run_is_refused_by_rank_and_node(ranks: list[RankNodes], said: str) -> None:
    with pytest.raises(AlgorithmError, match=said):
        custom_template("mine", AR, 100, ranks)


def test_files_start_from_the_folder_of_the_scenario(tmp_path: Path) -> None:
    planner = Planner(CollectiveConfig(all_reduce=ChakraFiles(path="x")), Context(tmp_path))
    with pytest.raises(AlgorithmError, match=rf"{tmp_path}/x"):
        planner.plan(AR, 8, 100)
