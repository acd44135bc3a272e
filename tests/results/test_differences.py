"""Two runs in words: the sentence has the iteration's difference, the lines what the path says."""

from __future__ import annotations

from pathlib import Path

import cosim

TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{name: job, workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""


def test_the_sentence_says_by_how_much_and_on_what() -> None:
    slow, fast = cosim.run(TEXT), cosim.run(TEXT, {"topology.rate": "160Gbps"})
    said = cosim.compare(slow, fast).said
    assert said is not None
    assert said.sentence == (
        "job takes 300 us less an iteration in b (300 us instead of 600 us, -50.0 %), "
        "most of it all_reduce 4 MB (-300 us)."
    )
    assert str(cosim.compare(slow, fast)).startswith("job takes 300 us less")


def test_what_is_on_one_path_only_is_exposed_or_hidden() -> None:
    one = cosim.run(TEXT)
    other = cosim.run(TEXT, {"jobs[0].workload.size": "8MB"})
    said = cosim.compare(one, other).said
    assert said is not None
    assert "all_reduce 8 MB is exposed now: +1.2 ms" in said.lines
    assert "all_reduce 4 MB is hidden now: -600 us" in said.lines


def test_the_same_run_takes_the_same_time() -> None:
    run = cosim.run(TEXT)
    said = cosim.compare(run, run).said
    assert said is not None
    assert said.sentence == "job takes the same time, 600 us an iteration."
    assert said.lines == ()


def test_runs_without_a_job_in_common_say_so() -> None:
    other = cosim.run(TEXT, {"jobs[0].name": "another"})
    said = cosim.compare(cosim.run(TEXT), other).said
    assert said is not None
    assert said.sentence == "The runs have no job in common."


SHARED = """
topology: {kind: leaf_spine, leaves: 2, spines: 1, endpoints_per_leaf: 4, rate: 100Gbps, latency: 500ns}
network: fair_share
jobs:
  - {name: a, workload: {kind: collective, collective: all_to_all, ranks: 4, size: 4MB}, placement: spread}
"""
SECOND = """
  - {name: b, workload: {kind: collective, collective: all_to_all, ranks: 4, size: 2MB}, placement: spread}
"""


def test_a_busier_link_says_which_jobs_share_it(tmp_path: Path) -> None:
    cosim.run(SHARED, out=tmp_path / "one")
    cosim.run(SHARED + SECOND.lstrip("\n"), out=tmp_path / "two")
    said = cosim.compare(tmp_path / "one", tmp_path / "two").said
    assert said is not None
    assert any(line.startswith("leaf0 -> spine0 is ") and "shared by a and b" in line for line in said.lines)
