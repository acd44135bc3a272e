"""Execution plans: read, proved, refused by place, and run at line size and at message size."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.errors import AlgorithmError, InputError
from cosim.pattern.costs import Costs
from cosim.pattern.mscclpp.kernels import (
    GetDirect,
    LsaAllToAll,
    OneshotMulticast,
    RingPackets,
    TwoshotGet,
    TwoshotMulticast,
    TwoshotPackets,
)
from cosim.pattern.mscclpp.messages import plan_template
from cosim.pattern.mscclpp.prove import KernelProof, prove_plan
from cosim.pattern.mscclpp.read import parse_plan
from cosim.pattern.prove import prove
from cosim.pattern.template import Collective
from tests.pattern.mscclpp.documents import (
    PLANS,
    SIGNAL,
    WAIT,
    Json,
    local,
    multicast_packets,
    op,
    packets,
    pair,
    pass_on,
    remote,
    two_shot,
)

KERNELS = [
    (OneshotMulticast(), Collective.ALL_REDUCE),
    (TwoshotMulticast(), Collective.ALL_REDUCE),
    (TwoshotMulticast(poison=True), Collective.ALL_REDUCE),
    (LsaAllToAll(), Collective.ALL_TO_ALL),
    (LsaAllToAll(poison=True), Collective.ALL_TO_ALL),
    (GetDirect(), Collective.ALL_GATHER),
    (TwoshotGet(), Collective.ALL_REDUCE),
    (TwoshotPackets(), Collective.ALL_REDUCE),
    (RingPackets(), Collective.ALL_REDUCE),
]


def proved(document: Json) -> KernelProof:
    return prove_plan(parse_plan(json.dumps(document)))


@pytest.mark.parametrize("document", [two_shot(), packets(), pass_on(), multicast_packets()])
def test_what_does_its_collective_is_proved(document: Json) -> None:
    assert "every order of steps gives this result" in str(proved(document))


@pytest.mark.parametrize(("kernel", "collective"), KERNELS)
@pytest.mark.parametrize("ranks", [2, 5])
def test_built_in_kernels_are_proved(kernel: Any, collective: Collective, ranks: int) -> None:
    assert kernel.prove(collective, ranks, 1 << 20).startswith("proved: ")


def changed(document: Json, gpu: int, ops: list[Json]) -> Json:
    document["gpus"][gpu]["threadblocks"][0]["ops"] = ops
    return document


def steps(document: Json, gpu: int) -> list[Json]:
    return list(document["gpus"][gpu]["threadblocks"][0]["ops"])


def test_a_missing_wait_at_the_end_is_a_race_with_the_end() -> None:
    plan = two_shot()
    with pytest.raises(
        AlgorithmError, match=r"GPU 1, block 0, step 2 \(rres\): race: writes .* GPU 0 may be through before"
    ):
        proved(changed(plan, 0, steps(plan, 0)[:-1]))


def test_a_missing_wait_is_a_race_by_gpu_block_and_step() -> None:
    # The peer's chunk is copied to scratch first, and read without waiting for that.
    def ops(gpu: int, *wait: Json) -> list[Json]:
        mine, theirs = local("i", gpu), local("i", 1 - gpu)
        add = op("rre", [mine, remote(gpu, buffer=1)], [mine])
        put = op("put", [mine], [remote(gpu)])
        return [op("copy", [theirs], [local("s", 1 - gpu)]), SIGNAL, *wait, add, put, SIGNAL, WAIT]

    good = pair([ops(0, WAIT), ops(1, WAIT)])
    proved(good)
    with pytest.raises(
        AlgorithmError, match=r"GPU 0, block 0, step 2 \(rre\): race: reads cell 0 of GPU 1's scratch"
    ):
        proved(pair([ops(0), ops(1, WAIT)]))


def test_relaxed_signals_do_not_order_memory() -> None:
    plan = json.loads(
        json.dumps(two_shot()).replace('"signal"', '"rlxsignal"').replace('"wait"', '"rlxwait"')
    )
    proved(plan)  # each chunk is one GPU's, and both know that the other is through

    def ops(gpu: int, kind: str) -> list[Json]:
        theirs = local("i", 1 - gpu)
        return [
            op("copy", [theirs], [local("s", 1 - gpu)]),
            op(f"{kind}signal", channel_ids=[0]),
            op(f"{kind}wait", channel_ids=[0]),
            op("rre", [local("i", gpu), remote(gpu, buffer=1)], [local("i", gpu)]),
            op("put", [local("i", gpu)], [remote(gpu)]),
            SIGNAL,
            WAIT,
        ]

    proved(pair([ops(0, ""), ops(1, "")]))
    with pytest.raises(AlgorithmError, match="race: reads"):
        proved(pair([ops(0, "rlx"), ops(1, "rlx")]))


def test_deadlocks_name_who_waits() -> None:
    plan = two_shot()
    for gpu in (0, 1):
        first, second, *rest = steps(plan, gpu)
        changed(plan, gpu, [second, first, *rest])
    with pytest.raises(
        AlgorithmError, match=r"GPU 0, block 0, step 0 \(wait\): deadlock.*; GPU 1, block 0, step 0"
    ):
        proved(plan)
    plan = two_shot()
    with pytest.raises(
        AlgorithmError, match=r"step 4 \(wait\): deadlock: waits for signal 1 on memory channel"
    ):
        proved(changed(plan, 1, steps(plan, 1)[:-2]))


def test_a_wrong_result_says_what_is_missing() -> None:
    plan = two_shot()
    ops = steps(plan, 0)
    ops[2] = op("put", [local("i", 0)], [remote(0)])
    with pytest.raises(
        AlgorithmError, match=r"a wrong result: cell 0 of GPU [01]'s input lacks what comes from GPU 1"
    ):
        proved(changed(plan, 0, ops))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (op("put", [local("i", 0)], [remote(2)]), r"chunks 2..2 of buffer i of GPU 1, which has 0..1"),
        (
            op("ppkt", [local("i", 0, 2)], [remote(1, 2, buffer=1)]),
            r"chunks 1..2 of buffer s of GPU 1, which has",
        ),
        (op("put", [local("x", 0)], [remote(0)]), "a buffer of type 'x'; known: i, o, s"),
        (op("put", [local("i", 0, 2)], [remote(0)]), "differ in 'size'"),
        (op("fly"), r"\(fly\): is no operation that is known; known: barrier"),
        (op("signal", channel_ids=[3]), "'channel_ids' should be a whole number from 0 to 0, not 3"),
        (op("sem_acquire", semaphore_ids=[0]), "'semaphore_ids' should be a whole number"),
        (op("upkt", [local("s", 0)], [local("i", 0)]), "polls cell 0 of buffer s, to which nobody writes"),
        (op("barrier", barrier_id=0, num_threadblocks=2), "barrier 0 is for 2 blocks, and 1 come to it"),
    ],
)
def test_what_can_not_be_meant_is_refused_by_its_place(change: Json, says: str) -> None:
    plan = two_shot()
    with pytest.raises(AlgorithmError, match=rf"GPU 0, block 0, step 0.*{says}"):
        proved(changed(plan, 0, [change, *steps(plan, 0)]))


def places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        found += [(value, key), *places(inner)]
    return found


def damaged(draw: random.Random, document: Json) -> str:
    if draw.random() < 0.1:
        text = json.dumps(document)
        at = draw.randrange(len(text))
        return text[:at] + draw.choice(["", "{", "]", '"', "9"]) + text[at + draw.randrange(3) :]
    document = copy.deepcopy(document)
    for _ in range(draw.choice([1, 1, 2])):
        holder, key = draw.choice(places(document))
        if draw.random() < 0.3:
            del holder[key]
        elif isinstance(holder[key], int) and draw.random() < 0.7:
            holder[key] += draw.choice([-1, 1])
        else:
            holder[key] = draw.choice(
                [None, -1, 0, 3, 10**30, 1.5, "i", "wait", [], {}, True, [0], "pipeline"]
            )
    return json.dumps(document)


def survives(text: str) -> None:
    try:
        plan = parse_plan(text)
        prove_plan(plan)
        prove(plan_template(plan, 1 << 16, Costs()))
    except InputError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said


@pytest.mark.parametrize("seed", range(3))
def test_damaged_plans_are_refused_or_run(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        survives(damaged(draw, draw.choice([two_shot(), packets(), pass_on(), multicast_packets()])))


@pytest.mark.slow
@pytest.mark.skipif(not PLANS, reason="MSCCL++'s plans are not at hand")
def test_damaged_plans_of_mscclpp_are_refused_or_run() -> None:
    draw = random.Random(7)
    documents = [json.loads(path.read_text()) for path in PLANS]
    for _ in range(1000):
        survives(damaged(draw, draw.choice(documents)))


def run(path: Path, network: str, size: str, ranks: int = 2, collective: str = "all_reduce") -> Any:
    return cosim.run(
        f"""
topology: {{kind: switch, endpoints: {ranks}, rate: 900GB/s, latency: 500ns}}
network: {network}
collectives: {{{collective}: {{algorithm: mscclpp, path: {path}}}}}
jobs: [{{workload: {{kind: collective, collective: {collective}, ranks: {ranks}, size: {size}}}}}]
"""
    )


def test_a_plan_runs_line_by_line_and_message_by_message(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(two_shot()))
    lines, messages = (run(path, network, "8KiB") for network in ("{model: device}", "fair_share"))
    took = [found.summary.jobs[0].iteration_mean_ps for found in (lines, messages)]
    # A signal, a load there and back, a store, a signal: five ways of 1 us, as messages too.
    assert took[1] == pytest.approx(5_000_000, rel=0.01)
    assert 5_000_000 < took[0] < 7_000_000
    assert lines.summary.line_waits is not None
    assert messages.summary.line_waits is None


@pytest.mark.skipif(not PLANS, reason="MSCCL++'s plans are not at hand")
def test_plans_of_mscclpp_are_proved_or_refused_by_name() -> None:
    refused = {}
    for path in PLANS:
        try:
            prove_plan(parse_plan(path.read_text(), path.name))
        except AlgorithmError as error:
            refused[path.name] = str(error)
    assert [*refused] == ["reduce_tbg.json"]
    # PlanBlock 1 of GPU 0 reads what block 0 of GPU 1 copied, and hears of block 1 alone.
    assert "GPU 0, block 1, step 6 (rres): race: reads" in refused["reduce_tbg.json"]


@pytest.mark.slow
@pytest.mark.skipif(not PLANS, reason="MSCCL++'s plans are not at hand")
@pytest.mark.parametrize(
    "path", [path for path in PLANS if path.stem != "reduce_tbg"], ids=lambda path: path.stem
)
def test_plans_of_mscclpp_run(path: Path) -> None:
    document = json.loads(path.read_text())
    collective = {"allreduce": "all_reduce", "allgather": "all_gather"}[document["collective"]]
    for network in ("{model: device}", "fair_share"):
        found = run(path, network, "64KiB", len(document["gpus"]), collective)
        assert found.summary.jobs[0].iteration_mean_ps > 0
