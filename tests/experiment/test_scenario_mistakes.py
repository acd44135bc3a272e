"""Every mistake in a scenario is answered with file, line, key, value and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from cosim.errors import CosimError, InputError, ScenarioError, StallError, WorkloadError
from cosim.experiment.build import build
from cosim.experiment.scenario import load, loads

GOOD = """\
name: small
topology:
  kind: ring
  endpoints: 8
  rate: 100Gbps
  latency: 1us
network: congestion_aware
jobs:
  - name: a
    iterations: 2
    workload:
      kind: collective
      collective: all_reduce
      ranks: 4
      size: 1MiB
  - name: b
    workload: {kind: collective, collective: all_gather, ranks: 4, size: 1MiB}
    start: 1ms
collectives: {all_reduce: ring}
release: network
"""


def mistake(text: str, *settings: str) -> str:
    with pytest.raises(CosimError) as caught:
        build(loads(text, settings, name="x.yaml"))
    return str(caught.value)


def test_the_scenario_without_a_mistake_loads() -> None:
    built = build(loads(GOOD))
    assert [job.endpoints.tolist() for job in built.jobs] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert built.warnings == ()


@pytest.mark.parametrize(
    ("right", "wrong", "place", "said"),
    [
        ("latency: 1us", "latncy: 1us", "x.yaml:6: topology.latncy", "did you mean 'latency'?"),
        ("latency: 1us", "latncy: 1us", "x.yaml:6: topology.latncy", "keys here: "),
        ("jobs:", "job:", "x.yaml:8: job", "did you mean 'jobs'?"),
        ("iterations: 2", "itrations: 2", "x.yaml:10: jobs[0].itrations", "did you mean 'iterations'?"),
        ("all_reduce: ring", "all_reduc: ring", "x.yaml:19: collectives.all_reduc", "'all_reduce'?"),
        ("rate: 100Gbps", "rate: 100", "x.yaml:5: topology.rate", "100 needs a rate unit"),
        ("rate: 100Gbps", "rate: 100Gb", "x.yaml:5: topology.rate", "'100Gb' needs a rate unit"),
        ("rate: 100Gbps", "rate: 0Gbps", "x.yaml:5: topology.rate", "not a rate above zero"),
        ("start: 1ms", "start: 1", "x.yaml:18: jobs[1].start", "needs a time unit"),
        ("iterations: 2", "count: 1000000000", "x.yaml:10: jobs[0].count", "4096"),
        ("start: 1ms", "start: -1ms", "x.yaml:18: jobs[1].start", "'-1ms' should be greater"),
        ("size: 1MiB", "size: 1MiBit", "x.yaml:15: jobs[0].workload.size", "needs a size unit"),
        ("  endpoints: 8\n", "", "x.yaml:2: topology.endpoints", "is missing"),
        ("      size: 1MiB\n", "", "x.yaml:11: jobs[0].workload", "needs a size"),
        ("endpoints: 8", "endpoints: many", "x.yaml:4: topology.endpoints", "'many' is not a whole number"),
        ("endpoints: 8", "endpoints: 0x_", "x.yaml:4: topology.endpoints", "'0x_' is not a whole number"),
        ("size: 1MiB", "size: 1e30", "x.yaml:15: jobs[0].workload.size", "more than an exabyte"),
        ("iterations: 2", "iterations: 2.5", "x.yaml:10: jobs[0].iterations", "2.5 is not a whole number"),
        ("iterations: 2", "iterations: 0", "x.yaml:10: jobs[0].iterations", "at least 1"),
        ("iterations: 2", "iterations: true", "x.yaml:10: jobs[0].iterations", "true is not a number"),
        ("start: 1ms", "start: 1e10s", "x.yaml:18: jobs[1].start", "longer than the 53 days"),
        ("all_reduce: ring", "endpoint_delay: -1ns", "x.yaml:19: collectives.endpoint_delay", "at least 0"),
        ("name: small", "name: sm\0ll", "x.yaml:1", "not YAML: it holds the character '\\x00'"),
        ("start: 1ms", "weight: heavy", "x.yaml:18: jobs[1].weight", "'heavy' is not a number"),
        ("start: 1ms", "weight: .inf", "x.yaml:18: jobs[1].weight", "inf is not a finite number"),
        ("release: network", "release: nework", "x.yaml:20: release", "did you mean 'network'?"),
        ("release: network", "record: {messages: csv}", "x.yaml:20: record.messages", "npz, parquet"),
        ("release: network", "record: yes", "x.yaml:20: record", "not a mapping"),
        ("kind: ring", "kind: rign", "x.yaml:3: topology.kind", "did you mean 'ring'?"),
        ("kind: ring", "kind: rign", "x.yaml:3: topology.kind", "leaf_spine"),
        ("  kind: ring\n", "", "x.yaml:2: topology", "needs the key 'kind'"),
        ("  kind: ring\n", "  model: ring\n", "x.yaml:2: topology", "not 'model'"),
        ("network: c", "network: {kind: c}  #", "x.yaml:7: network", "needs the key 'model', not 'kind'"),
        ("network: congestion_aware", "network: [1]", "x.yaml:7: network", "[1] is not a network"),
        ("all_reduce: ring", "all_reduce: rong", "x.yaml:19: collectives.all_reduce", "did you mean 'ring'?"),
        (GOOD[GOOD.index("  - name: a") : GOOD.index("collectives:")], "  []\n", "x.yaml:8: jobs", "too few"),
        ("name: b", "name: a", "x.yaml:16: jobs[1].name", "'a' is taken"),
        ("endpoints: 8", "endpoints: 6", "x.yaml:16: jobs[1].placement", "4 are taken by earlier jobs"),
        (
            "start: 1ms",
            "placement: {kind: explicit, endpoints: [3, 4, 5, 6]}",
            "x.yaml:18: jobs[1].placement",
            "endpoint 3 is wanted by the job 'b', but it has a rank of the job 'a'",
        ),
        (
            "start: 1ms",
            "placement: {kind: explicit, endpoints: [4, 5, six, 7]}",
            "x.yaml:18: jobs[1].placement.endpoints[2]",
            "'six' is not a whole number",
        ),
        ("iterations: 2", "name: c", "x.yaml:10: jobs[0].name", "already given in line 9"),
        ("  rate: 100Gbps", "\trate: 100Gbps", "x.yaml:5", "not tabs"),
        ("name: small", "name: [small", "x.yaml:", "not YAML"),
        ("name: small", "name: *small", "x.yaml:1", "undefined alias"),
    ],
)
def test_a_mistake_is_said_with_its_place(right: str, wrong: str, place: str, said: str) -> None:
    assert right in GOOD
    message = mistake(GOOD.replace(right, wrong, 1))
    assert message.startswith(place)
    assert said in message


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("jobs[0].iterations=many", "'many' is not a whole number"),
        ("jobs[0].itrations=1", "did you mean 'iterations'?"),
        ("jobs[5].iterations=1", "jobs is a list of 2, which has no 5"),
        ("jobs.first.iterations=1", "jobs is a list of 2, which has no 'first'"),
        ("jobs[2].workload.kind=collective", "jobs[2].workload.collective: is missing"),
        ("topology.kind", "there is no '='"),
        ("seed=[", "not YAML"),
        ("name.first=1", "name is 'small' in x.yaml; it has no keys to set"),
        (".name=1", "not a path"),
        ("=1", "not a path"),
        ("topology.routing.kind=ecmpp", "did you mean 'ecmp'?"),
        ("topology.rate=5", "5 needs a rate unit"),
        ("network.speed=5", "unknown key 'speed'"),
        ("network.seed=5", "unknown key 'seed'; the top level takes it"),
        ("jobs[0].ranks=5", "unknown key 'ranks'; jobs[0].workload takes it"),
        ("jobs[0].workload.gpu=a100", "unknown key 'gpu'"),
        (
            "network={model: congestion_unaware, balancer: spray}",
            "congestion_unaware has no balancer: fair_share and congestion have load balancers",
        ),
        (
            "network={model: hybrid, balancer: spray}",
            "hybrid has no balancer: give it to scale_up",
        ),
        ("network={model: ns3_rdma, balancer: spray}", "its switches choose paths by routing: ecmp, flowlet"),
        (
            "network={model: ns3, balancer: spray}",
            "ns3 has no balancer: a simulator elsewhere chooses paths itself",
        ),
    ],
)
def test_a_mistake_in_a_setting_is_said_with_the_setting(setting: str, said: str) -> None:
    message = mistake(GOOD, setting)
    assert message.startswith(f"--set {setting}: ")
    assert said in message


def test_several_mistakes_are_said_at_once_in_the_order_of_the_file() -> None:
    text = GOOD.replace("8", "many").replace("1ms", "soon").replace("iterations: 2", "iterations: 0")
    lines = [line for line in mistake(text).splitlines() if line.strip().startswith("x.yaml")]
    assert [line.strip().split(": ")[0] for line in lines] == ["x.yaml:4", "x.yaml:10", "x.yaml:18"]


def test_keys_that_anchors_repeat_are_found_where_they_stand() -> None:
    text = GOOD.replace("start: 1ms", "start: &later 1").replace("iterations: 2", "start: *later")
    assert "x.yaml:10: jobs[0].start: 1 needs a time unit" in mistake(
        text.replace("&later 1", "1ms").replace("*later", "1")
    )


def test_an_empty_file_lacks_everything() -> None:
    message = mistake("")
    assert all(f"{key}: is missing" in message for key in ("topology", "network"))


def test_a_missing_file_says_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ring.yaml").write_text(GOOD)
    with pytest.raises(ScenarioError, match=r"rnig\.yaml: there is no such file\n.*ring\.yaml"):
        load(tmp_path / "rnig.yaml")


def test_errors_of_making_a_thing_point_at_what_named_it() -> None:
    unknown_dimension = GOOD.replace("kind: collective\n", "kind: chakra\n      path: nowhere\n", 1)
    unknown_dimension = unknown_dimension.replace(
        "      collective: all_reduce\n      ranks: 4\n      size: 1MiB\n", ""
    )
    with pytest.raises(WorkloadError) as caught:
        build(loads(unknown_dimension, name="x.yaml"))
    assert str(caught.value).startswith("x.yaml:11: jobs[0].workload")


def test_a_workload_that_would_stall_is_refused_with_its_place_and_who_waits() -> None:
    text = GOOD.replace(
        "    workload: {kind: collective, collective: all_gather, ranks: 4, size: 1MiB}\n",
        "    workload:\n"
        "      kind: operations\n"
        "      world_size: 2\n"
        "      programs:\n"
        "        - operations: [{name: wait, kind: recv, peer: 0, size: 8B}]\n"
        "          ranks: [1]\n"
        "        - operations: [{name: think, kind: compute, duration: 1us}]\n"
        "          ranks: [0]\n",
    )
    with pytest.raises(StallError) as caught:
        build(loads(text, name="x.yaml"))
    assert str(caught.value).startswith("x.yaml:17: jobs[1].workload")
    assert "rank 1" in str(caught.value)


def test_input_errors_are_told_apart_from_the_rest() -> None:
    with pytest.raises(InputError) as caught:
        loads("jobs: 1", name="x.yaml")
    assert caught.value.location is not None
    assert caught.value.location.file == "x.yaml"
