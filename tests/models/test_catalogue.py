"""Sizes of catalogue models against what was published."""

import pytest

from cosim.models.catalogue.architecture import TransformerModel
from cosim.models.catalogue.recommendation import DLRM
from cosim.models.catalogue.vision import RESNET50, VGG16
from cosim.registry import find, names

PUBLISHED = {
    # SC 2021, table 1: billions, rounded to a tenth
    "gpt3-1.7b": 1.7e9, "gpt3-3.6b": 3.6e9, "gpt3-7.5b": 7.5e9, "gpt3-18b": 18.4e9, "gpt3-39b": 39.1e9,
    "gpt3-76b": 76.1e9, "gpt3-145b": 145.6e9, "gpt3-310b": 310.1e9, "gpt3-530b": 529.6e9,
    "gpt3-1t": 1008.0e9, "gpt3-175b": 174.6e9, "gpt3-22b": 22.07e9,
}  # fmt: skip
EXACT = {
    # num_parameters() of the released checkpoints
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_630_071_296,
    "deepseek-v3": 671_026_404_352,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "resnet-50": 25_557_032,
    "vgg-16": 138_357_544,
}
ACTIVE = {"mixtral-8x7b": 12.9e9, "mixtral-8x22b": 39.2e9, "deepseek-v2": 21.4e9, "deepseek-v3": 37.6e9}
"""Billions that a token meets, to a tenth: 12.9, 39, 21 and 37 in the papers."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_gpt_parameters_are_narayanans(name: str) -> None:
    model = find("cosim.models", name)
    assert model.parameters == pytest.approx(PUBLISHED[name], abs=0.06e9)
    lay, h, v, s = model.layers, model.hidden, model.vocabulary, model.sequence
    # equation 2 of the paper leaves out the last norm
    assert model.parameters - 2 * h == 12 * lay * h * h + 13 * lay * h + (v + s) * h


@pytest.mark.parametrize("name", EXACT)
def test_parameters_are_the_checkpoints(name: str) -> None:
    assert find("cosim.models", name).parameters == EXACT[name]


@pytest.mark.parametrize("name", ACTIVE)
def test_parameters_for_a_token_are_the_papers(name: str) -> None:
    assert find("cosim.models", name).active_parameters == pytest.approx(ACTIVE[name], abs=0.06e9)


def test_flops_of_an_image_are_the_papers() -> None:
    # 4.09 and 15.47 G multiply-adds, as torchvision counts them
    assert RESNET50.flops / 2 == 4_089_184_256
    assert VGG16.flops / 2 == 15_470_264_320


def test_dlrm_is_mlperfs() -> None:
    assert sum(DLRM.rows) == 187_767_399
    assert DLRM.bottom_sizes == [(13, 512), (512, 256), (256, 128)]
    assert DLRM.top_sizes[0] == (479, 1024)  # 351 pairs and 128


def test_flops_of_a_token_are_twice_its_parameters_and_attention() -> None:
    model = find("cosim.models", "llama3-8b")
    keys = 8192
    weights = model.parameters - model.embedding_parameters - (2 * model.layers + 1) * model.hidden
    assert model.flops_per_token(keys) == 2 * weights + model.layers * 4 * keys * model.hidden


def test_every_model_has_a_source_and_a_size() -> None:
    for name in names("cosim.models"):
        model = find("cosim.models", name)
        if not isinstance(model, type):
            assert model.source
            assert "parameters" in model.size
    assert issubclass(find("cosim.models", "transformer"), TransformerModel)
