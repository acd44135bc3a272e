"""Two runs in words: the sentence has the iteration's difference, the lines what the path says."""

from __future__ import annotations

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
