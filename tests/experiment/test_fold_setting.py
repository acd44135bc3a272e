"""``fold:`` in a scenario: what is asked for, what is said of it, and where it is refused."""

from __future__ import annotations

import pytest

import cosim
from cosim.errors import ScenarioError
from cosim.experiment.scenario import loads

REPLICAS = """
topology:
  kind: leaf_spine
  leaves: {leaves}
  spines: 4
  endpoints_per_leaf: {per_leaf}
  rate: 100Gbps
  latency: 500ns
  routing: dmodk
network: {network}
jobs:
  - name: reduce
    workload: {{kind: collective, collective: all_reduce, size: 1MB, ranks: {ranks}, repeat: 2}}
fold: {fold}
"""


def scenario(ranks: int, fold: str, network: str = "fair_share", leaves: int = 1) -> cosim.Scenario:
    text = REPLICAS.format(ranks=ranks, fold=fold, network=network, leaves=leaves, per_leaf=ranks // leaves)
    return loads(text)


def test_auto_folds_large_jobs_only_and_says_so() -> None:
    small, large = cosim.run(scenario(256, "auto")), cosim.run(scenario(512, "auto"))
    assert small.summary.jobs[0].folding == ()
    assert len(small.records.finish_ps[0]) == 256
    assert large.summary.jobs[0].num_ranks == 512
    assert large.summary.jobs[0].folding[0].startswith("folded ")
    assert "1 of 512 ranks are simulated, each standing for 512" in str(large)


def test_folded_and_unfolded_summaries_say_the_same() -> None:
    off, always = (cosim.run(scenario(64, fold, leaves=2)).summary for fold in ("never", "always"))
    one, two = off.jobs[0], always.jobs[0]
    assert (one.num_ranks, one.iteration_ps, one.communication) == (
        two.num_ranks,
        two.iteration_ps,
        two.communication,
    )
    assert off.collectives == always.collectives
    assert off.links == always.links
    assert off.link_totals == always.link_totals
    assert off.fct == always.fct
    assert off.traffic.total_bytes == always.traffic.total_bytes
    assert off.num_messages == always.num_messages


def test_always_refuses_where_nothing_can_be_folded() -> None:
    with pytest.raises(
        ScenarioError, match=r"fold: no ranks can be folded: congestion_aware may serve first"
    ):
        cosim.run(scenario(16, "always", network="congestion_aware"))


def test_auto_says_why_a_large_job_is_not_folded() -> None:
    run = cosim.run(scenario(512, "auto", network="congestion_aware"))
    assert run.summary.jobs[0].folding[0].startswith("not folded: congestion_aware may serve first")


def test_recording_every_message_is_not_folded() -> None:
    asked = scenario(512, "auto").with_settings({"record.messages": "npz"})
    run = cosim.run(asked)
    assert run.summary.jobs[0].folding == ("not folded: record.messages asks for every message",)
    assert run.records.messages is not None
    assert len(run.records.messages.src) == run.records.num_messages
