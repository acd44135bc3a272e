"""The reference engine gives what the kernel gives: in random worlds, and in the repository's scenarios."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.engine.records import Records
from cosim.engine.reference.replay import ReferenceReplay, replay_reference
from cosim.errors import InputError, NetworkError, ScenarioError, StallError
from cosim.experiment.build import build
from cosim.experiment.engines import engine_for
from cosim.experiment.fold import fold
from cosim.kernel.library import kernel
from cosim.network.flows import Completions, FlowBatch
from cosim.network.forwarding import ForwardingNetwork
from cosim.network.reference import plain_network
from cosim.network.simulator import Advance
from cosim.pattern.planner import Planner
from tests.engine.reference.worlds import World, by_kernel, by_reference, said, tried, world
from tests.engine.worlds import collective, compute, config, job, one_dimension, recv, send, workload
from tests.examples.answers import answer, answer_file
from tests.inputs import ROOT

FEW, MANY = range(40), range(1000, 1150)
PAIR = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: NETWORK
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""
SCENARIOS = "ring-all-reduce", "imported", "cassini", "crux", "unfair-exact", "two-jobs", "mltcp", "plug-in"
DEAR_SCENARIOS = (
    "hierarchical", "unfair-exact-overlong", "unfair-dcqcn", "pfc-victim", "quickstart", "cluster-queue",
    "nemotron-nano", "link-failure",
)  # fmt: skip


def assert_same(one: World) -> None:
    kernel_s, references = tried(by_kernel, one), tried(by_reference, one)
    assert said(references) == said(kernel_s)
    if isinstance(references, Records) and isinstance(kernel_s, Records):
        assert_same_records(references, kernel_s)


def assert_same_records(one: Records, other: Records) -> None:
    """Beyond the digest: what results are made of."""
    for name in ("job", "iteration", "rank", "op", "start_ps", "end_ps"):
        assert np.array_equal(getattr(one.ops, name), getattr(other.ops, name)), name
    assert [*one.collectives] == [*other.collectives]
    assert one.num_messages == other.num_messages
    assert one.end_ps == other.end_ps
    for mine, theirs in zip(one.iteration_end_ps, other.iteration_end_ps, strict=True):
        assert np.array_equal(mine, theirs)
    for mine, theirs in zip(one.finish_ps, other.finish_ps, strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(one.fct.counts, other.fct.counts)
    assert (one.fct.min_ps, one.fct.max_ps, one.fct.sum_ps) == (
        other.fct.min_ps, other.fct.max_ps, other.fct.sum_ps,
    )  # fmt: skip
    assert _by_pair(one) == _by_pair(other)
    assert np.array_equal(one.links.link_bytes, other.links.link_bytes)
    # Where two links are full at once, either may be the one that is said to be.
    assert one.links.bin_ps == other.links.bin_ps
    assert np.abs(one.links.busy_ps - other.links.busy_ps).max(initial=0) <= 1


def _by_pair(records: Records) -> dict[tuple[int, int], list[int]]:
    traffic = records.traffic
    pairs = zip(traffic.src.tolist(), traffic.dst.tolist(), traffic.size_bytes.T.tolist(), strict=True)
    return {(src, dst): bins for src, dst, bins in pairs if any(bins)}


@pytest.mark.parametrize("seed", FEW)
def test_a_random_world_is_the_same_in_both_engines(seed: int) -> None:
    assert_same(world(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_many_random_worlds_are_the_same_in_both_engines(seed: int) -> None:
    assert_same(world(seed))


@pytest.mark.parametrize(
    "name", [*SCENARIOS, *(pytest.param(name, marks=pytest.mark.slow) for name in DEAR_SCENARIOS)]
)
def test_a_scenario_gives_its_answer(name: str) -> None:
    path = ROOT / "scenarios" / f"{name}.yaml"
    found = answer(path, "network", "--engine", "reference")
    assert found == answer_file(path).read_text(encoding="utf-8")


BEHIND_THE_SEAM = (
    "{model: hybrid, scale_up: fair_share, scale_out: congestion_aware}",
    "{model: congestion, control: dctcp}",
    "{model: fair_share, balancer: flowlet}",
)


@pytest.mark.parametrize("network", BEHIND_THE_SEAM)
@pytest.mark.parametrize("release", ["network", "engine"])
def test_any_other_network_is_asked_behind_the_seam(network: str, release: str) -> None:
    hosts = "{gpus: 4, nvlink_rate: 1600Gbps, nvlink_latency: 300ns, nics: 4, nic_rate: 400Gbps}"
    fabric = (
        f"{{kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, latency: 500ns, hosts: {hosts}}}"
    )
    text = f"""
    topology: {fabric}
    network: {network}
    release: {release}
    jobs: [{{workload: {{kind: collective, collective: all_reduce, ranks: 8, size: 4MB}}, iterations: 2}}]
    """
    assert cosim.run(text, engine="reference").digest == cosim.run(text).digest


def test_what_was_computed_when_somebody_interrupts_is_kept() -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    run = cosim.run(ROOT / "scenarios" / "quickstart.yaml", engine="reference", progress=interrupt)
    assert "interrupted at" in run.interrupted
    assert run.records.num_messages == 0 or len(run.records.fct.counts)
    assert str(run)


def test_a_page_is_the_same_whoever_runs() -> None:
    pages = [
        str(cosim.run(PAIR.replace("NETWORK", "fair_share"), engine=name)) for name in ("kernel", "reference")
    ]
    assert len({re.sub(r"simulated in .*? s,", "", page) for page in pages}) == 1


def test_messages_are_recorded_alike() -> None:
    runs = [
        cosim.run(PAIR.replace("NETWORK", "congestion_aware"), messages=True, engine=name).records.messages
        for name in ("kernel", "reference")
    ]
    for name in ("job", "iteration", "op", "src", "dst", "size_bytes", "start_ps", "end_ps"):
        assert np.array_equal(*(getattr(one, name) for one in runs)), name


@pytest.mark.parametrize("network", ["fair_share", "{model: congestion, control: dctcp}"])
def test_rates_over_time_are_recorded_alike(network: str) -> None:
    record = {"rates": ["*", "npu0 -> npu1"], "every": "10us"}
    if "congestion" in network:
        record["queues"] = ["* -> *"]
    one, other = (
        cosim.run(PAIR.replace("NETWORK", network), set={"record": record}, engine=name).records.series
        for name in ("kernel", "reference")
    )
    assert one is not None
    assert other is not None
    for name in ("at_ps", "links", "names", "connections"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for name in ("rate_bps", "window_bytes", "marked"):
        assert np.allclose(getattr(one, name), getattr(other, name), equal_nan=True), name
    for mine, theirs in zip(one.queues, other.queues, strict=True):
        assert np.array_equal(mine, theirs)


def test_operations_that_were_to_be_spilled_are_kept(tmp_path: Path) -> None:
    text = PAIR.replace("NETWORK", "fair_share")
    spilled = cosim.run(text, set={"record.spill": str(tmp_path)}, engine="reference")
    assert np.array_equal(spilled.operations.end_ps, cosim.run(text).operations.end_ps)


def test_ranks_that_get_slower_at_once_all_do() -> None:
    text = """
    topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    network: fair_share
    jobs:
      - workload:
          kind: operations
          world_size: 4
          programs: [{operations: [{name: a, kind: compute, duration: 1ms}]}]
    events: [{rank: "*", slow: 2, at: 0s}]
    """
    assert {*cosim.run(text, engine="reference").operations.end_ps.tolist()} == {2 * 10**9}


# -- what is refused, and what is said ---------------------------------------------------------------


def test_jobs_that_are_folded_are_refused() -> None:
    scenario = cosim.loads(PAIR.replace("NETWORK", "fair_share"), {"fold": "always"})
    built = build(scenario)
    folded, _ = fold(scenario, built)
    with pytest.raises(ScenarioError, match="doesn't fold jobs"):
        replay_reference(built.topology, built.network, folded, built.planner)


def test_an_engine_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="no engine 'turbo'"):
        cosim.run(PAIR.replace("NETWORK", "fair_share"), engine="turbo")


def test_without_a_kernel_the_reference_runs_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    expected = cosim.run(PAIR.replace("NETWORK", "fair_share")).digest
    monkeypatch.setattr(type(kernel), "why_not", lambda _: "the kernel can't be loaded: no such file")
    with caplog.at_level(logging.WARNING, "cosim"):
        assert cosim.run(PAIR.replace("NETWORK", "fair_share")).digest == expected
    assert caplog.messages == [
        "the kernel can't be loaded: no such file; "
        "the reference engine runs meanwhile: the same results, but slowly"
    ]
    for network, name in (
        ("{model: congestion, control: dctcp}", "congestion"),
        ("{model: fair_share, balancer: flowlet}", "fair_share with a load balancer"),
    ):
        text = PAIR.replace("NETWORK", network).replace(
            "kind: ring, endpoints: 4", "kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2"
        )
        with pytest.raises(InputError, match=f"network {name} needs the kernel"):
            cosim.run(text)
    with pytest.raises(InputError, match="can't be loaded"):
        engine_for("kernel")


STUCK = [
    ([[send(1, 10)], [compute(5)]], "rank 0: SEND op 0 'send', 10 B, tag 0: rank 1 never posts the RECV"),
    ([[recv(1, 10)], [compute(5)]], "rank 0: RECV op 0 'recv', 10 B, tag 0: rank 1 never posts the SEND"),
    (
        [[collective(10), compute(1, 0)], [recv(0, 10), collective(10, 0)]],
        "rank 0: all_reduce 'collective', 10 B (iteration 0): waits for rank 1 to start it",
    ),
]


@pytest.mark.parametrize(("programs", "line"), STUCK)
def test_a_stall_says_who_waits_for_whom(programs: Any, line: str) -> None:
    topology = one_dimension("Ring", 2)
    network = plain_network("congestion_aware", topology)
    assert network is not None
    with pytest.raises(StallError) as caught:
        replay_reference(topology, network, [job(workload(*programs))], Planner(config()))
    assert line in caught.value.waits


def test_a_network_that_stands_still_is_named() -> None:
    class Still(ForwardingNetwork):
        def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:  # noqa: ARG002
            return Advance(0, Completions(np.zeros(0, np.int32), *np.zeros((3, 0), np.int64)))

    topology = one_dimension("Ring", 2)
    network = plain_network("congestion_aware", topology)
    assert network is not None
    with pytest.raises(NetworkError, match="makes no progress"):
        replay_reference(
            topology, Still(network), [job(workload([send(1, 10)], [recv(0, 10)]))], Planner(config())
        )


def test_processes_of_ones_own_may_join_the_clock() -> None:
    built = build(cosim.loads(PAIR.replace("NETWORK", "congestion_aware")))
    network = plain_network("congestion_aware", built.topology)
    assert network is not None
    run, seen = ReferenceReplay(built.topology, network, built.jobs, built.planner), []

    def watch() -> Any:
        while True:
            yield run.clock.timeout(100_000_000)
            seen.append((run.clock.now_ps, run.recorder.num_messages))
            if run.recorder.num_messages == 24:
                return

    run.clock.process(watch())
    records = run.run()
    assert records.digest == cosim.run(PAIR.replace("NETWORK", "congestion_aware")).digest
    assert seen[:2] == [(100_000_000, 4), (200_000_000, 8)]


# -- its pages ---------------------------------------------------------------------------------------


def test_architecture_shows_the_main_loop_as_it_is() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    shown = [*re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)]
    [text] = shown
    source = ROOT / "cosim" / "engine" / "reference" / "clock.py"
    for method in ast.parse(text).body:
        assert isinstance(method, ast.FunctionDef)
        assert _source_of(source, method.name) == ast.get_source_segment(text, method)


def _source_of(path: Path, name: str) -> str:
    """A method's source, as it would stand at the margin."""
    text = path.read_text(encoding="utf-8")
    found = next(
        one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef) and one.name == name
    )
    lines = text.splitlines()[found.lineno - 1 : found.end_lineno]
    return "\n".join(line.removeprefix("    ") for line in lines)
