"""A catalogue model cut by layers: its sizes by hand, its times those of the model trained whole."""

from __future__ import annotations

from typing import Any

import pytest

import cosim
from cosim.context import HERE
from cosim.errors import InputError
from cosim.models.catalogue.workload import ModelWorkload
from cosim.workload.layers.workload import LayersWorkload

VGG = {"model": "vgg-16", "gpu": "v100-sxm2", "workers": 1}
BERT = {"model": "bert-large", "gpu": "v100-sxm2", "dtype": "fp16", "micro_batch": 2, "workers": 1}


def profile(**settings: Any) -> Any:
    return LayersWorkload(**settings)._profile(HERE)


def test_sizes_are_those_of_the_model() -> None:
    vgg = profile(**VGG)
    assert len(vgg) == 16
    assert vgg.parameter_bytes.sum() == 553_430_176  # 138,357,544 parameters of four bytes
    assert vgg.activation_bytes[0] == 32 * 64 * 224 * 224 * 4
    assert vgg.activation_bytes[-1] == 32 * 1000 * 4
    bert = profile(**BERT)
    assert len(bert) == 26  # embedding and head
    assert {*bert.crossing_bytes[:-1].tolist()} == {2 * 512 * 1024 * 2}


@pytest.mark.parametrize("settings", [VGG, BERT])
def test_times_are_those_of_the_model_trained_whole(settings: dict[str, Any]) -> None:
    spec = LayersWorkload(**settings)
    whole = ModelWorkload(
        model=spec.model, gpu=spec.gpu, dtype=spec.dtype, micro_batch=spec.micro_batch, memory="ignore"
    ).build(HERE)
    for phase in ("forward", "backward"):
        done = [one for one in whole.programs[0].operations if (one.phase, one.stream) == (phase, "compute")]
        expected = sum(one.duration_ps for one in done)
        mine = sum(getattr(one, f"{phase}_ps") for one in spec._profile(HERE).layers)
        assert mine == pytest.approx(expected, rel=1e-3)


def test_a_pipeline_takes_its_slowest_stage() -> None:
    stages = [{"layers": [0, 13], "workers": 1}, {"layers": [13, 26], "workers": 1}]
    work = {"kind": "layers", **BERT, "workers": 2, "plan": stages}
    done = cosim.run(
        {
            "topology": {"kind": "switch", "endpoints": 2, "rate": "100Tbps", "latency": "0ns"},
            "network": "fair_share",
            "jobs": [{"iterations": 12, "workload": work}],
        }
    )
    seconds = profile(**BERT).compute_s
    slowest = max(seconds[:13].sum(), seconds[13:].sum())
    assert done.summary.jobs[0].iteration_mean_ps == pytest.approx(slowest * 1e12, rel=1e-3)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "vgg-16"}, "a model needs a gpu"),
        ({"gpu": "v100-sxm2", "layers": [{"forward": "1ms", "backward": "1ms"}]}, "a gpu a model"),
        ({**VGG, "file": "vgg.txt"}, "either a file, or layers, or a model and a gpu"),
        ({**VGG, "model": "vgg-17"}, "there is no model 'vgg-17'"),
        ({**VGG, "dtype": "fp31"}, "dtype"),
        ({**VGG, "sequence": 5}, "it has no sequence"),
        ({**VGG, "model": "dlrm"}, "talks to other replicas while it computes"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        cosim.run(
            {
                "topology": {"kind": "switch", "endpoints": 2, "rate": "1Gbps", "latency": "0ns"},
                "network": "fair_share",
                "jobs": [{"workload": {"kind": "layers", "workers": 1, **settings}}],
            }
        )
