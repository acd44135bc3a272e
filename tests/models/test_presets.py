"""Scripts by name: what they set, what a scenario's own settings do to that, and how sure a job is then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cosim.context import HERE
from cosim.gpu.catalogue import read
from cosim.gpu.efficiency import OUTSIDE
from cosim.models.catalogue.workload import ModelWorkload
from cosim.models.frameworks import Megatron, PyTorch
from cosim.models.presets import ENGINE, PRESETS, PresetName
from tests.lab.validation import presets


def made(**given: Any) -> ModelWorkload:
    """Llama 3 8B on eight H100s."""
    whole = {
        "model": {"kind": "llama3-8b", "sequence": 8192}, "gpu": "h100-sxm", "parallel": {"fsdp": 8},
        "micro_batch": 2, "batch": 16, "memory": "ignore", **given,
    }  # fmt: skip
    return ModelWorkload.model_validate(whole)


def test_a_preset_is_as_if_its_settings_were_written() -> None:
    written = made(
        attention="flash2",
        recompute="selective",
        framework={"kind": "pytorch", "norm": "written", "optimizer": "fused"},
    )
    by_name = made(preset="torchtitan-2024-12")
    assert by_name.model_dump(exclude={"preset"}) == written.model_dump(exclude={"preset"})
    one, other = (each.build(HERE).programs[0].busy_ps for each in (by_name, written))
    assert one == other


def test_what_a_scenario_says_holds_and_both_are_named() -> None:
    job = made(preset="torchtitan-2024-12", recompute="none", framework={"compile": True})
    assert isinstance(job.framework, PyTorch)
    assert (job.recompute, job.attention, job.framework.norm) == ("none", "flash2", "written")
    assert job.framework.compile
    said = "\n".join(job.build(HERE).report.assumed)
    assert "preset torchtitan-2024-12 has recompute selective; the scenario's none holds" in said
    assert "has framework" not in said  # it doesn't set compile


def test_other_settings_can_be_changed_of_a_job_with_a_preset() -> None:
    job = made(preset="torchtitan-2024-12").with_settings(batch=32, recompute="full")
    assert (job.samples, job.recompute, job.attention) == (32, "full", "flash2")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"preset": ["torchtitan-2024-12", "vllm-0.19"]}, "no preset is called .'torchtitan-2024-12', 'vllm"),
        ({"preset": "torchtitan"}, "no preset is called torchtitan; there are torchtitan-2024-12, llm"),
        (
            {"preset": "torchtitan-2024-12", "framework": "megatron"},
            "is a script of framework pytorch, and framework megatron is given too: leave one of them out",
        ),
        ({"preset": "torchtitan-2024-12", "framework": {"compil": True}}, "compil"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made(**given)


def test_what_a_preset_sets_in_vain_is_nobodys_mistake() -> None:
    alone = {"model": "llama3-8b", "gpu": "h100-sxm", "memory": "ignore", "preset": "megatron-bridge-26.06"}
    one = ModelWorkload.model_validate(alone)
    assert isinstance(one.framework, Megatron)
    assert one.framework.tp_comm_overlap
    assert one.idle_settings() == []
    given = ModelWorkload.model_validate({**alone, "framework": {"tp_comm_overlap": False}})
    assert [name for name, _ in given.idle_settings()] == ["framework"]
    buckets = ModelWorkload.model_validate({**alone, "bucket": "1MiB"})
    assert [name for name, _ in buckets.idle_settings()] == ["bucket"]


def own_error(**given: Any) -> float:
    """A job's own."""
    error = made(**given).build(HERE).error
    assert error is not None
    return error[1]


def test_an_interval_is_the_gpus_and_the_presets_and_wider_outside() -> None:
    common, own = read("h100-sxm").error("bf16")
    titan = PRESETS["torchtitan-2024-12"].error
    known = made(preset="torchtitan-2024-12").build(HERE).error
    assert known == pytest.approx((common, np.hypot(own, titan)))
    other = own_error(preset="torchtitan-2024-12", attention="flash")
    assert known is not None
    assert other == pytest.approx(np.hypot(known[1], OUTSIDE))
    a100, plain = (own_error(preset=name, gpu="a100-80gb") for name in ("torchtitan-2024-12", None))
    assert a100 == pytest.approx(np.sqrt(plain**2 + titan**2 + OUTSIDE**2))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_where_it_is_from_and_its_gpus_are_known(name: PresetName) -> None:
    preset = PRESETS[name]
    assert preset.source
    assert bool([read(gpu).name for gpu in preset.gpus]) != preset.held.startswith("nothing")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fits_the_task_it_is_of(name: PresetName) -> None:
    given = {"model": "llama3-8b", "gpu": "h100-sxm", "memory": "ignore", "preset": name}
    own, other = ("decode", "training") if PRESETS[name].serves else ("training", "decode")
    made = ModelWorkload.model_validate({**given, "task": own})
    assert name in "\n".join(made.build(HERE).report.assumed)
    assert made.idle_settings() == []
    with pytest.raises(ValueError, match=f"preset {name} and task {other} don't go together"):
        ModelWorkload.model_validate({**given, "task": other})


def test_pytorch_alone_is_what_pytorch_does() -> None:
    bare = made(framework="pytorch")
    written = made(
        attention="flash2", framework={"kind": "pytorch", "norm": "written", "optimizer": "foreach"}
    )
    one, other = (each.build(HERE).programs[0].busy_ps for each in (bare, written))
    assert one == other
    assert bare.attention is None
    assert (bare.attends, made().attends) == ("flash2", "flash")


def test_a_decode_step_has_an_interval_of_its_own() -> None:
    def own_of(gpu: str, **given: Any) -> tuple[float, float] | None:
        whole = {"model": "llama3-8b", "gpu": gpu, "task": "decode", "batch": 8, "memory": "ignore", **given}
        return ModelWorkload.model_validate(whole).build(HERE).error

    known = own_of("h100-sxm", preset="vllm-0.19")
    assert known == pytest.approx((0, 0.05))
    assert own_of("h100-sxm") == pytest.approx((0, np.hypot(0.05, ENGINE)))
    amd = own_of("mi300x", preset="vllm-0.19")
    assert amd is not None
    assert np.hypot(*amd) == pytest.approx(np.sqrt(0.25**2 + 0.05**2 + OUTSIDE**2))
    assert own_of("h100-sxm", model="mixtral-8x7b") is None
    prefill = {"model": "llama3-8b", "gpu": "h100-sxm", "task": "prefill"}
    assert ModelWorkload.model_validate(prefill).build(HERE).error is None


def test_a_recipe_halves_the_weights_that_a_decode_step_reads() -> None:
    def step(**given: Any) -> tuple[int, int]:
        whole = {"model": "llama3-70b", "gpu": "h100-sxm", "task": "decode", "parallel": {"tp": 8}, **given}
        job = ModelWorkload.model_validate(whole)
        return job.build(HERE).programs[0].busy_ps, job.memory_needed()

    (wide, much), (narrow, little) = step(), step(recipe="fp8")
    assert narrow < 0.75 * wide
    assert 0.5 < little / much < 0.56


@pytest.mark.slow
def test_thirteen_published_jobs_by_preset_alone() -> None:
    found = list(presets.jobs())
    errors = np.array([job.error for job in found])
    assert (len(found), len({job.preset for job in found})) == (13, 5)
    assert np.abs(errors).mean() <= 0.06
    assert abs(errors.mean()) <= 0.04
    assert sum(job.within for job in found) >= 10
