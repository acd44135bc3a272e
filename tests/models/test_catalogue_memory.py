"""Memory of each GPU against "Reducing Activation Recomputation", arXiv 2205.05198; what is said of it."""

import re
from typing import Any

import pytest

from cosim.context import HERE
from cosim.errors import WorkloadError
from cosim.models.catalogue.blocks import Blocks
from cosim.models.catalogue.cut import Cut, Parallel
from cosim.models.catalogue.language import GPT3_175B
from cosim.models.catalogue.memory import activation_bytes, in_flight
from cosim.models.catalogue.workload import ModelWorkload

S, H, A, B = 2048, 12288, 96, 2


@pytest.mark.parametrize(
    ("tp", "sp", "recompute", "expected"),
    [
        (1, False, "none", S * B * H * (34 + 5 * A * S / H)),  # equation 1
        (8, False, "none", S * B * H * (10 + 24 / 8 + 5 * A * S / (H * 8))),  # equation 2
        (8, True, "none", S * B * H / 8 * (34 + 5 * A * S / H)),  # equation 4
        (8, True, "selective", S * B * H * 34 / 8),  # equation 6
        (1, False, "full", 2 * S * B * H),  # table 2
    ],
)
def test_activations_of_a_layer_are_korthikantis(tp: int, sp: bool, recompute: Any, expected: float) -> None:
    cut = Cut(Parallel(tp=tp, sp=sp), B, S, S, 2, attention="unfused", recompute=recompute)
    assert activation_bytes(Blocks(GPT3_175B, cut), 0) == expected


def test_micro_batches_under_way() -> None:
    assert [in_flight("1f1b", s, 4, 8, 1) for s in range(4)] == [4, 3, 2, 1]
    assert in_flight("gpipe", 3, 4, 8, 1) == 8
    # section 4.2.3: interleaving keeps L (1 + (p - 1) / (p m)) layers at the first stage, of L / p
    assert in_flight("interleaved", 0, 4, 8, 3) == pytest.approx(4 * (1 + 3 / (4 * 3)), abs=1 / 3)


def spec(**settings: Any) -> ModelWorkload:
    return ModelWorkload.model_validate({"model": "gpt3-175b", "gpu": "a100-80gb", **settings})


def test_megatrons_own_cut_fits_and_says_how() -> None:
    made = spec(parallel={"tp": 8, "pp": 8, "dp": 16}, batch=64)
    memory = made.job().memory
    per_rank = 174.6e9 / 64
    # first and last stage have the embedding besides
    assert memory.weights == pytest.approx(2 * per_rank, rel=0.05)
    assert memory.gradients == 2 * memory.weights
    assert memory.optimizer == 6 * memory.weights
    assert memory.activations == pytest.approx(12 * 4 * S * H * 34 / 8, rel=0.02)  # four under way
    (text,) = [line for line in made.build(HERE).report.read if "memory" in line]
    assert "memory of the fullest GPU" in text
    assert "of 80 GiB, 4 GiB of them reserved" in text


def test_sharding_divides_what_it_shards() -> None:
    plain = spec(parallel={"tp": 8, "pp": 8, "dp": 16}).job().memory
    sharded = spec(parallel={"tp": 8, "pp": 8, "dp": 16}, sharded_optimizer=True).job().memory
    assert sharded.optimizer == pytest.approx(plain.optimizer / 16, rel=1e-6)
    assert sharded.weights == plain.weights
    everything = spec(parallel={"fsdp": 1024}).job().memory
    assert everything.optimizer == pytest.approx(12 * 174.6e9 / 1024, rel=1e-2)
    layer = 12 * H * H
    assert everything.weights == pytest.approx(
        2 * (174.6e9 / 1024 + 2 * layer), rel=0.01
    )  # two layers are whole


@pytest.mark.parametrize(
    "settings",
    [
        {"parallel": {"tp": 8, "dp": 128}},
        {"parallel": {"tp": 8, "pp": 2, "dp": 64}},
        {"parallel": {"tp": 8, "pp": 8, "dp": 16, "sp": False}, "attention": "unfused"},
        {"model": "llama3-70b", "gpu": "h100-sxm"},
        {"model": "llama3-8b", "task": "decode", "sequence": 131072, "micro_batch": 8},
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(settings: dict[str, Any]) -> None:
    made = spec(**settings)
    with pytest.raises(
        WorkloadError, match=r"does not fit on .*: it has 76 GiB, 80 GiB less 4 GiB"
    ) as caught:
        made.build(HERE)
    hint = caught.value.hint or ""
    assert "`memory: ignore` runs it all the same" in hint
    shown = [float(gigabytes) for gigabytes in re.findall(r"\(([\d.]+) GiB\)", hint)]
    assert shown
    assert max(shown) * 1e9 <= 76 * 2**30
    read = spec(**settings, memory="ignore").build(HERE).report.read
    assert "DOES NOT FIT" in read[-1]


def test_a_suggestion_that_is_followed_fits() -> None:
    made = spec(parallel={"tp": 8, "pp": 2, "dp": 64})
    with pytest.raises(WorkloadError, match="does not fit") as caught:
        made.build(HERE)
    hint = caught.value.hint or ""
    assert "sharded_optimizer: true" in hint
    assert "parallel.pp: 8 with dp: 16" in hint
    made.with_settings(sharded_optimizer=True).build(HERE)
    made.with_settings(parallel={"pp": 8, "dp": 16}).build(HERE)
