"""What lives in remote memory: what is loaded and stored, when, and what is left on the GPU."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.context import HERE
from cosim.models.catalogue.workload import ModelWorkload

LAYERS, MICRO_BATCHES = 4, 2
EVERYTHING = {"optimizer": "remote", "gradients": "remote", "parameters": "remote"}


def job(**changes: Any) -> dict[str, Any]:
    return {
        "model": {"kind": "gpt3-1.7b", "layers": LAYERS},
        "gpu": "a100-80gb",
        "parallel": {"dp": 2, "tp": 2},
        "batch": 4 * MICRO_BATCHES,
        "micro_batch": 2,
        **changes,
    }


def run(rate: str | None = "100GB/s", latency: str = "0ns", **changes: Any) -> cosim.Run:
    memory = None if rate is None else {"kind": "per_npu", "rate": rate, "latency": latency}
    found = cosim.run(
        {
            "topology": {"kind": "switch", "endpoints": 4, "rate": "400Gbps", "latency": "1us"},
            "network": "fair_share",
            "memory": memory,
            "jobs": [{"workload": {"kind": "model", **job(**changes)}}],
        }
    )
    assert isinstance(found, cosim.Run)
    return found


def accesses(**changes: Any) -> dict[tuple[str, str], int]:
    """Bytes of a rank's loads and stores in an iteration, by access and phase."""
    made = ModelWorkload.model_validate(job(**changes)).build(HERE)
    found: dict[tuple[str, str], int] = {}
    for one in made.programs[0].operations:
        if one.access:
            key = one.access, one.phase
            found[key] = found.get(key, 0) + one.size_bytes
    return found


def parameters() -> int:
    spec = ModelWorkload.model_validate(job())
    return sum(layer.num_parameters for layer in spec.job().stages[0][0])


def test_what_is_loaded_and_stored_in_an_iteration() -> None:
    count = parameters()
    # Weights are 2 bytes, gradients 4, states 12; all of them are loaded and stored whole.
    assert accesses(offload=EVERYTHING) == {
        ("load", "forward"): 2 * count * MICRO_BATCHES,
        ("load", "backward"): 2 * count * MICRO_BATCHES + 4 * count * (MICRO_BATCHES - 1),
        ("store", "backward"): 4 * count * MICRO_BATCHES,
        ("load", "optimizer"): (12 + 4) * count,
        ("store", "optimizer"): (12 + 2) * count,
    }


def test_shards_of_states_and_gradients_are_loaded_and_stored() -> None:
    count = parameters()
    found = accesses(offload={**EVERYTHING, "parameters": "local"}, sharded_optimizer=True)
    share = count // 2
    assert found[("load", "optimizer")] == pytest.approx((12 + 4) * share, rel=1e-6)
    assert found[("store", "optimizer")] == pytest.approx(12 * share, rel=1e-6)
    assert found[("store", "backward")] == pytest.approx(
        4 * count * (MICRO_BATCHES - 1) + 4 * share, rel=1e-6
    )


@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("parallel", [{"dp": 2, "tp": 2}, {"dp": 1, "tp": 4}, {"pp": 2, "tp": 2}])
def test_memory_without_end_changes_nothing(parallel: dict[str, int], overlap: bool) -> None:
    more = (
        {"parallel": parallel, "overlap_gradients": overlap}
        if parallel.get("dp", 1) > 1
        else {"parallel": parallel}
    )
    local = run(None, **more).records.end_ps
    remote = run("1000000000GB/s", offload=EVERYTHING, **more).records.end_ps
    # The optimizer's step is done in as many parts as there are layers.
    assert remote == pytest.approx(local, rel=2e-3)


def test_slow_memory_is_all_that_is_waited_for() -> None:
    done = run("1GB/s", offload=EVERYTHING)
    busy = sum(accesses(offload=EVERYTHING).values()) / 1e9
    took = done.records.end_ps / 1e12
    assert busy <= took <= busy * 1.01
    assert done.summary.jobs[0].limit.startswith("remote memory")


def test_between_the_two_loads_hide_behind_computation() -> None:
    local, remote = run(None).records.end_ps, run("2000GB/s", offload=EVERYTHING).records.end_ps
    busy = sum(accesses(offload=EVERYTHING).values()) / 2e12 * 1e12
    assert local < remote < local + busy


def test_auto_takes_what_does_not_fit_and_no_more() -> None:
    big = {"model": "gpt3-18b", "parallel": {"tp": 4}, "micro_batch": 1, "recompute": "full", "batch": 1}
    said = []
    for offload in ({}, {"parameters": "local"}, {"gradients": "local", "optimizer": "local"}):
        made = ModelWorkload.model_validate(job(**big, offload=offload)).build(HERE)
        kinds = {one.name.split()[-2] for one in made.programs[0].operations if one.access}
        said.append((kinds, made.remote_bytes))
    # 18.4 G parameters on four GPUs: 9 GB of weights, 18 GB of gradients, 55 GB of states; 76 GiB of room.
    assert said[0][1] == pytest.approx(55e9, rel=0.02)
    assert said[1][1] == said[0][1]
    assert said[2][1] == pytest.approx(9.2e9, rel=0.02)


def test_what_fits_stays_where_it_is() -> None:
    assert accesses(offload={}) == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"parallel": {"fsdp": 4}, "offload": EVERYTHING}, "can't live in remote memory with ShardedStage"),
        ({"task": "prefill", "offload": {}}, "offload is of training"),
        ({"staleness": 1, "offload": {}}, "staleness with offload"),
        ({"offload": {"optimizer": "far"}}, "is not one of local, remote, auto"),
        ({"offload": {"activations": "remote"}}, "activations"),
        (
            {
                "framework": {"kind": "megatron", "overlap_param_gather": True},
                "sharded_optimizer": True,
                "offload": EVERYTHING,
            },
            "can't live in remote memory with overlap_param_gather",
        ),
    ],
)
def test_what_has_no_offload_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(cosim.InputError) as caught:
        run(**changes)
    assert said in str(caught.value)


def test_a_job_without_the_memory_is_refused() -> None:
    with pytest.raises(cosim.ScenarioError, match="has no `memory:`"):
        run(None, offload=EVERYTHING)


def test_what_is_too_much_even_for_remote_memory_is_refused() -> None:
    scenario: dict[str, object] = {
        "topology": {"kind": "switch", "endpoints": 4, "rate": "400Gbps", "latency": "1us"},
        "network": "fair_share",
        "jobs": [{"workload": {"kind": "model", **job(offload=EVERYTHING)}}],
    }
    kept = 18 * parameters()
    own: dict[str, object] = {"kind": "per_npu", "rate": "1GB/s"}
    with pytest.raises(cosim.InputError, match=r"remote memory of endpoint 0 has .*, but jobs keep 3\.44"):
        cosim.run({**scenario, "memory": {**own, "capacity": kept - 1}})
    cosim.run({**scenario, "memory": {**own, "capacity": kept}})
    with pytest.raises(cosim.InputError, match=r"remote memory 0 has"):
        cosim.run({**scenario, "memory": {**own, "kind": "pool", "capacity": 4 * kept - 1}})
