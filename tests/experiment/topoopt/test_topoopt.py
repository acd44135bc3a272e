"""SharedLinks and parallelism found in turns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cosim
from cosim.engine.programs import ready_job
from cosim.errors import InputError
from cosim.experiment.build import build
from cosim.experiment.topoopt.alternate import TopoOpt
from cosim.experiment.topoopt.demand import ServerDemand, demand_of
from cosim.experiment.topoopt.links import SharedLinks, share_links
from cosim.topology.strides import connects

SWITCH = "topology: {kind: switch, endpoints: 8, rate: 100Gbps, latency: 1us}\nnetwork: fair_share\n"


def demand(
    servers: int, rings: dict[tuple[int, ...], float], pairs: dict[tuple[int, int], float] | None = None
) -> ServerDemand:
    matrix = np.zeros((servers, servers))
    for pair, size in (pairs or {}).items():
        matrix[pair] = size
    return ServerDemand(servers, rings, matrix, frozenset({"all_reduce"} if rings else ()))


def degrees(servers: int, links: SharedLinks) -> list[int]:
    ends = Counter(end for pair in links.pairs for end in pair)
    return [2 * len(links.strides) + ends[server] for server in range(servers)]


def test_one_group_of_all_has_the_papers_strides() -> None:
    assert share_links(demand(16, {tuple(range(16)): 1e9}), 4) == SharedLinks([1, 5], [])


def test_groups_of_every_so_many_servers_have_strides_of_their_own() -> None:
    groups = {tuple(range(first, 16, 2)): 1e9 for first in range(2)}
    links = share_links(demand(16, groups, {(0, 1): 1e9, (2, 3): 1e8}), 6)
    assert links.strides == [2, 6]
    assert links.pairs[:2] == [[0, 1], [2, 3]]
    assert max(degrees(16, links)) <= 6


def test_a_pair_that_is_served_weighs_less() -> None:
    # By hand: 0-1 (9) and 2-3 (4) first; then 9/2 + 4/2 = 6.5 against 0-2 and 1-3, 3.5 each, 7.
    links = share_links(demand(4, {}, {(0, 1): 9, (2, 3): 4, (0, 2): 3.5, (3, 1): 3.5}), 2)
    assert links == SharedLinks([], [[0, 1], [2, 3], [0, 2], [1, 3]])
    # 15 + 15 is more than 3 + 3, and so are 10 + 10: the third link of each is for the others' sake.
    again = share_links(demand(4, {}, {(0, 1): 30, (2, 3): 30, (0, 2): 12, (3, 1): 12}), 3)
    assert Counter(map(tuple, again.pairs)) == {(0, 1): 2, (2, 3): 2, (0, 2): 1, (1, 3): 1}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_links_connect_all_servers_and_are_no_more_than_the_degree(data: Any) -> None:
    n, degree = data.draw(st.integers(2, 12)), data.draw(st.integers(2, 7))
    size = data.draw(st.sampled_from([g for g in range(2, n + 1) if n % g == 0]))
    rings = {tuple(range(first, n, n // size)): 1e6 for first in range(n // size)}
    rings |= {tuple(range(first, first + size)): 1e5 for first in range(0, n, size)}
    pairs = data.draw(
        st.dictionaries(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), st.floats(1, 1e6))
    )
    asked = demand(n, rings, {pair: each for pair, each in pairs.items() if pair[0] != pair[1]})
    links = share_links(asked, degree)
    assert connects(n, links.strides, links.pairs)
    assert max(degrees(n, links)) <= degree


def test_one_link_each_is_too_few() -> None:
    with pytest.raises(InputError, match="--degree 1: 8 servers can't be linked"):
        share_links(demand(8, {tuple(range(8)): 1e9}), 1)


def test_demand_is_what_operations_send() -> None:
    scenario = cosim.loads(
        SWITCH + "jobs: [{workload: {kind: transformer, layers: 4, hidden: 512, heads: 8, vocabulary: 1000, "
        "sequence: 128, micro_batch: 1, micro_batches: 2, tensor_parallel: 2, pipeline_parallel: 2, "
        "data_parallel: 2, gpu: a100-80gb}}]"
    )
    built = build(scenario)
    found = demand_of(ready_job(0, built.jobs[0], built.topology), 8)
    assert {len(group) for group in found.rings} == {2}
    # Two micro-batches of 128 tokens of 512 values, and the embedding of 1000 tokens twice, in two bytes,
    # each of the two tensor-parallel ranks its half.
    sent = found.pairs[found.pairs > 0]
    assert set(sent.tolist()) == {2 * 128 * 512 * 2 / 2 + 2 * 1000 * 512 * 2 / 2}
    assert len(sent) == 8


def search(tmp_path: Path, jobs: str, degree: int = 4) -> tuple[Any, Any, list[str]]:
    path = tmp_path / "given.yaml"
    said: list[str] = []
    path.write_text(SWITCH + jobs)
    found, scenario = TopoOpt(path, (), degree, "100Gbps", "1us", said.append).search()
    return found, scenario, said


def test_parallelism_and_links_are_found_in_turns(tmp_path: Path) -> None:
    gpt = (
        "jobs: [{workload: {kind: transformer, layers: 2, hidden: 1024, heads: 8, vocabulary: 1000, "
        "sequence: 256, micro_batch: 1, tensor_parallel: 4, data_parallel: 2, gpu: a100-80gb}}]"
    )
    found, scenario, said = search(tmp_path, gpt)
    assert said[0].startswith("as given      tp 4, pp 1, dp 2")
    assert found.split != (4, 1, 2)
    done = cosim.run(scenario)
    assert done.summary.jobs[0].iteration_mean_ps == found.iteration_ps
    first_ms = float(said[0].split(": ")[2].split(" ")[0])
    assert said[0].endswith(" ms an iteration of 2 samples")
    assert found.sample_ps < first_ms * 1e9 / 2


def test_a_job_without_parallelism_gets_links(tmp_path: Path) -> None:
    jobs = "jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 8, size: 10MB}}]"
    found, scenario, _ = search(tmp_path, jobs)
    assert found.links.strides == [1, 3]
    assert found.split == ()
    assert cosim.run(scenario).summary.jobs[0].iteration_mean_ps == pytest.approx(0.35e9 + 14e6, rel=0.01)


def test_several_jobs_and_no_rates_are_refused(tmp_path: Path) -> None:
    job = "{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 10MB}}"
    with pytest.raises(InputError, match="the topology of one job"):
        search(tmp_path, f"jobs: [{job}, {job}]")
    path = tmp_path / "one.yaml"
    path.write_text(SWITCH + f"jobs: [{job}]")
    with pytest.raises(InputError, match="--rate fast"):
        TopoOpt(path, (), 4, "fast", "1us", print).search()
