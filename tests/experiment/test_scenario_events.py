"""Events in scenarios: closed forms through the whole, mistakes, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import cosim
from cosim.engine import replay
from cosim.errors import InputError, StallError
from cosim.units import PS_PER_MS

ONE_WAY = """
topology: {kind: ring, endpoints: 2, rate: 8Gbps, latency: 0ns}
network: fair_share
jobs: [{name: pair, workload: {kind: collective, collective: all_to_all, ranks: 2, size: 20MB}}]
"""
FABRIC = """
topology:
  {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 8Gbps, latency: 0s, routing: shortest}
network: fair_share
jobs: [{workload: {kind: collective, collective: all_to_all, ranks: 4, size: 4MB}}]
"""
COMPUTING = """
topology: {kind: ring, endpoints: 2, rate: 8Gbps, latency: 0ns}
network: fair_share
jobs:
- workload: {kind: periodic, ranks: 2, compute: 10ms, size: 1MB}
  iterations: 3
"""


def times(text: str, events: str, **more: object) -> tuple[int, ...]:
    run = cosim.run(text, set={"events": cosim_value(events), **more})
    return tuple(run.summary.jobs[0].iteration_ps)


def cosim_value(text: str) -> object:
    from cosim.files.located_yaml import parse_value

    return parse_value(text)


every_network = pytest.mark.parametrize("network", ["fair_share", "congestion_aware", "congestion_unaware"])


@every_network
def test_a_halved_link_and_a_dead_one_by_closed_form(network: str) -> None:
    # 10 MB each way at 1 GB/s: 10 ms.
    assert times(ONE_WAY, "[]", network=network) == (10 * PS_PER_MS,)
    half = "[{link: npu0 -> npu1, rate: 4Gbps, at: 2ms, until: 3ms}]"
    assert times(ONE_WAY, half, network=network) == (10 * PS_PER_MS + PS_PER_MS // 2,)
    dead = "[{link: npu0 <-> npu1, down: true, at: 2ms, until: 9ms}]"
    assert times(ONE_WAY, dead, network=network) == (17 * PS_PER_MS,)
    often = "[{node: npu1, down: true, at: 1ms, until: 2ms, every: 2ms, times: 3}]"
    assert times(ONE_WAY, often, network=network) == (13 * PS_PER_MS,)


@every_network
@pytest.mark.parametrize("release", ["network", "engine"])
def test_the_engine_may_release_and_messages_may_be_asked_for(release: str, network: str) -> None:
    events = (
        "[{node: spine0, down: true, at: 500us, until: 5ms}, {link: 'leaf* -> spine1', rate: 1Gbps, at: 2ms}]"
    )
    given = {"events": cosim_value(events), "network": network}
    one = cosim.run(FABRIC, set=given)
    other = cosim.run(FABRIC, set={**given, "release": release}, messages=True)
    assert one.digest == other.digest
    assert one.digest != cosim.run(FABRIC, set={"network": network}).digest


def test_flows_go_round_a_dead_spine_after_the_detection() -> None:
    # 1 MB from each to each: 3 ms out of each endpoint, and 4 of 4 ms by way of the first spine, both ways.
    assert times(FABRIC, "[]") == (4 * PS_PER_MS,)
    # The other spine does as well, but for the 50 us before it is known.
    assert times(FABRIC, "[{node: spine0, down: true}]") == (4 * PS_PER_MS + 50_000_000,)
    assert times(FABRIC, "[{node: spine0, down: true}]", detection="2ms") == (6 * PS_PER_MS,)


@every_network
def test_a_slow_rank_takes_longer_from_then_on(network: str) -> None:
    plain = times(COMPUTING, "[]", network=network)
    exchange = plain[0] - 10 * PS_PER_MS
    found = times(COMPUTING, "[{rank: 0, slow: 1.5, at: 5ms, until: 12ms}]", network=network)
    # What had begun goes on as it was; all of the second is slow, though the event ends during it.
    assert found == (plain[0], 15 * PS_PER_MS + exchange, plain[2])


@every_network
def test_without_a_way_the_run_ends_and_names_link_and_ranks(network: str) -> None:
    with pytest.raises(StallError) as error:
        times(ONE_WAY, "[{link: npu0 -> npu1, down: true, at: 2ms}]", network=network)
    assert error.value.waits[0] == "the link npu0 -> npu1 fails at 2 ms and never comes back"
    assert any("ranks 0, 1" in line or "rank 1" in line for line in error.value.waits[1:])


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_all_slowdowns_of_an_instant_come_before_what_begins_there(engine: str) -> None:
    """Of several at a job's start only the first one took effect in time."""
    text = COMPUTING.replace("ranks: 2", "ranks: 4").replace("endpoints: 2", "endpoints: 4")
    slow = cosim.run(text, {"events": [{"rank": "*", "slow": 2, "at": "0s"}]}, engine=engine)
    longer = cosim.run(text, {"jobs[0].workload.compute": "20ms"})
    assert slow.digest == longer.digest


@pytest.mark.slow  # of links, tests/network/test_link_changes.py says the same, of a network alone
def test_events_that_never_end_do_not_keep_a_dead_run_going(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_IN_VAIN", 1_000)  # of a rank's events, each a turn of SimPy's loop
    with pytest.raises(StallError):
        times(
            ONE_WAY,
            "[{link: npu0 -> npu1, down: true}, "
            "{link: npu1 -> npu0, rate: 1Gbps, at: 1us, until: 2us, every: 2us}, "
            "{rank: 0, slow: 2, at: 1us, until: 2us, every: 2us}]",
        )


@pytest.mark.parametrize(
    ("text", "events", "said"),
    [
        (
            ONE_WAY,
            "[{link: npu0 -> npu7, down: true}]",
            r"events\[0\].link: Ring\(2\) has no node 'npu7'; did you mean",
        ),
        (ONE_WAY, "[{rank: 7, slow: 2}]", r"events\[0\].rank: there is no rank 7; the job has ranks 0 to 1"),
        (ONE_WAY, "[{rank: x, slow: 2}]", r"'x' is not a rank; write its number, or '\*'"),
        (
            ONE_WAY,
            "[{rank: 0, job: pai, slow: 2}]",
            r"events\[0\].job: there is no job 'pai'; did you mean 'pair'",
        ),
        (ONE_WAY, "[{link: 0, down: true, at: 2ms, until: 1ms}]", r"events\[0\]: .*it ends after it began"),
        (ONE_WAY, "[{link: 0, down: true, at: -2ms}]", r"events\[0\].at"),
        (ONE_WAY, "[{link: 0, dwon: true}]", "unknown key 'dwon'; did you mean 'down'"),
    ],
)
def test_mistakes_are_named_with_their_place(text: str, events: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        times(text, events)


STILL = """
from cosim.plugins import NetworkSpec
from cosim.testing.conformance.faulty_network import StillNetwork


class Still(NetworkSpec):
    'Links are for good'

    def build(self, context):
        return StillNetwork()
"""


def test_a_network_whose_links_are_for_good_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "still.py").write_text(STILL, encoding="utf-8")
    text = ONE_WAY.replace("fair_share", "{plugin: 'still.py:Still'}") + "events: [{link: 0, down: true}]\n"
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(
        InputError, match=r"events\[0\]: congestion_aware has no links that fail or slow down"
    ):
        cosim.run(tmp_path / "s.yaml")


def test_what_can_not_matter_draws_a_warning() -> None:
    def warnings(events: str, **more: object) -> str:
        return "\n".join(cosim.run(ONE_WAY, set={"events": cosim_value(events), **more}).warnings)

    assert warnings("[{link: 0, down: true, at: 1ms, until: 2ms}]", detection="1ms") == ""
    assert "events[0]: has no effect: the run ends at 10 ms, before 20 ms" in warnings(
        "[{link: 0, down: true, at: 20ms}]"
    )
    assert "events[0]: has no effect: the rank computes nothing" in warnings("[{rank: 0, slow: 2}]")
    assert "detection=1ms: has no effect: no link or node goes down" in warnings("[]", detection="1ms")


@every_network
def test_the_same_seed_draws_the_same(network: str) -> None:
    events = "[{link: '* <-> *', down: true, mtbf: 4ms, repair: 500us}]"
    one, again, other = (
        cosim.run(FABRIC, set={"events": cosim_value(events), "seed": seed, "network": network}).digest
        for seed in (1, 1, 2)
    )
    assert one == again != other


TRAINED = """
topology: {kind: switch, endpoints: 4, rate: 8Gbps, latency: 0ns}
network: fair_share
jobs:
- name: long
  workload:
    kind: operations
    world_size: 4
    programs: [{operations: [{name: iteration, kind: compute, duration: 2s}]}]
  iterations: 2
  training: {lasts: 100d, restart: 1s, checkpoint: {every: 10s, time: 1s}}
events: [{rank: 1, fails: true, at: 25s, cause: disk}, {rank: 2, fails: true, at: 101d}]
"""


def test_a_training_lasts_longer_than_simulated_time_can() -> None:
    run = cosim.run(TRAINED)
    life = run.summary.jobs[0].training
    assert life is not None
    # Of each 11 s 10; but for 3 s computed again, 1 s down, and where the end falls.
    assert life.goodput == pytest.approx(10 / 11, abs=1e-6)
    assert (life.failures, life.redone_ps, life.down_ps) == (1, 3 * 10**12, 10**12)
    assert cosim.Summary.from_json(run.summary.to_json()).jobs[0].training == life
    assert "training of 100 d: goodput 90.91%" in str(run.summary)
    assert "disk: 1 time, 0.00% computed again, 0.00% down" in str(run.summary)
    assert [line for line in run.warnings if "events[1]" in line and "the training is over by then" in line]


def test_a_failure_in_no_training_draws_a_warning() -> None:
    [warning] = cosim.run(ONE_WAY, set={"events": cosim_value("[{rank: 0, fails: true}]")}).warnings
    assert "its job says nothing of a training" in warning


def test_a_simulator_elsewhere_is_told_by_number_and_refused_what_it_does_not_claim() -> None:
    from cosim.errors import FeatureError
    from cosim.experiment.build import build
    from cosim.protocol.settings import SessionSettings
    from cosim.protocol.v1 import network_simulator_pb2 as pb

    there = pb.DescribeResponse(features=[pb.FEATURE_GIVEN_PATHS, pb.FEATURE_LINK_EVENTS])

    def asked(events: str) -> pb.LinkEvents:
        topology = build(cosim.loads(FABRIC, set={"events": cosim_value(events)})).topology
        return SessionSettings().request(topology, 0, there, 1 << 20).link_events

    told = asked("[{link: leaf0 <-> spine1, down: true, at: 1ms, until: 3ms}]")
    built = build(cosim.loads(FABRIC)).topology
    both = {n for n in range(built.num_links) if {*built.link_name(n).split(" -> ")} == {"leaf0", "spine1"}}
    assert [*told.time_ps] == [PS_PER_MS] * 2 + [3 * PS_PER_MS] * 2
    assert ({*told.link[:2]}, {*told.link[2:]}) == (both, both)
    assert [*told.up] == [False, False, True, True]
    with pytest.raises(FeatureError, match="can't do what is asked: link_rates"):
        asked("[{link: leaf0 -> spine1, rate: 1Gbps}]")
    there.features.append(pb.FEATURE_LINK_RATES)
    assert [*asked("[{link: 0, rate: 1Gbps, until: 1ms}]").rate_bps] == [1e9, built.link_rate_bps[0]]
    # What never ends is told as far as it fits; see tests/protocol/test_link_events.py.
    assert len(asked("[{link: 0, down: true, at: 1us, until: 2us, every: 3us}]").time_ps) == 100_000
