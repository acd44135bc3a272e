"""Models with Mamba-2 layers: sizes as in ``transformers``' models of the released configurations."""

from typing import Any

import pytest
from pydantic import ValidationError

from cosim.models.catalogue.architecture import ATTENTION, MAMBA, TransformerModel
from cosim.registry import find

EXACT = {  # of the released checkpoints, without modules that predict a token ahead
    "mamba2-2.7b": 2_702_599_680,
    "nemotron-h-8b": 8_100_852_736,
    "nemotron-h-56b": 56_324_350_464,
    "nemotron-3-nano": 31_577_937_344,
    "nemotron-3-super": 120_668_687_360,
    "nemotron-3-ultra": 549_308_968_960,
}
PAPERS = {  # total, and those that a token meets; billions
    "mamba2-2.7b": (2.7, 2.7),
    "nemotron-3-nano": (31.6, 3.6),
    "nemotron-3-super": (120.6, 12.7),
}
WITH_AHEAD = {"nemotron-3-super": 124, "nemotron-3-ultra": 561}
"""Billions of numbers in the released files, which have one module that predicts ahead."""
TINY: dict[str, Any] = {
    "kind": "transformer", "layers": 4, "pattern": "M*-E", "hidden": 64, "heads": 4, "ffn": 128,
    "mamba": {"state": 16, "heads": 8, "head_dim": 16, "groups": 2, "chunk": 32},
    "experts": {"num": 4, "top_k": 2, "ffn": 32}, "vocabulary": 128, "sequence": 64, "gated": False,
}  # fmt: skip


def of_transformers(model: TransformerModel) -> Any:
    """The model as ``transformers`` has it, without memory."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    mamba, experts = model.mamba, model.experts
    assert mamba is not None
    sizes: dict[str, Any] = {
        "vocab_size": model.vocabulary,
        "hidden_size": model.hidden,
        "conv_kernel": mamba.conv,
        "chunk_size": mamba.chunk,
        "n_groups": mamba.groups,
    }
    with torch.device("meta"):
        if not model.heads:
            sizes |= {"num_heads": mamba.heads, "head_dim": mamba.head_dim, "state_size": mamba.state}
            sizes |= {"num_hidden_layers": model.layers, "tie_word_embeddings": model.tied}
            return transformers.Mamba2ForCausalLM(transformers.Mamba2Config(**sizes))
        if experts is not None:
            sizes |= {
                "n_routed_experts": experts.num,
                "num_experts_per_tok": experts.top_k,
                "moe_intermediate_size": experts.ffn,
                "n_shared_experts": experts.shared,
                "moe_shared_expert_intermediate_size": experts.shared_ffn,
                "moe_latent_size": experts.latent,
            }
        config = transformers.NemotronHConfig(
            **sizes,
            hybrid_override_pattern=model.pattern,
            num_attention_heads=model.heads,
            num_key_value_heads=model.kv,
            head_dim=model.head,
            intermediate_size=model.ffn,
            ssm_state_size=mamba.state,
            mamba_num_heads=mamba.heads,
            mamba_head_dim=mamba.head_dim,
        )
        return transformers.NemotronHForCausalLM(config)


@pytest.mark.parametrize("name", EXACT)
def test_parameters_are_those_of_transformers_model(name: str) -> None:
    model = find("cosim.models", name)
    built = {id(one): one.numel() for one in of_transformers(model).parameters()}
    assert model.parameters == EXACT[name] == sum(built.values())


@pytest.mark.parametrize("name", EXACT)
def test_products_are_those_of_transformers_model(name: str) -> None:
    model, keys = find("cosim.models", name), 1024
    experts, mamba = model.experts, model.mamba
    flops = 0
    for named, weight in of_transformers(model).named_parameters():
        if "experts." in named and weight.dim() == 3:
            flops += 2 * weight.numel() // experts.num * experts.top_k
        elif weight.dim() == 2 and ("embeddings" not in named or model.tied):
            flops += 2 * weight.numel()
    flops += model.count(MAMBA) * mamba.flops_per_token()
    flops += model.count(ATTENTION) * 4 * keys * model.heads * model.head
    assert model.flops_per_token(keys) == flops


@pytest.mark.parametrize("name", PAPERS)
def test_parameters_round_to_the_papers(name: str) -> None:
    model, (total, active) = find("cosim.models", name), PAPERS[name]
    assert model.parameters / 1e9 == pytest.approx(total, abs=0.1)
    assert model.active_parameters / 1e9 == pytest.approx(active, abs=0.1)


@pytest.mark.parametrize("name", WITH_AHEAD)
def test_the_released_files_have_one_module_that_predicts_ahead(name: str) -> None:
    model = find("cosim.models", name)
    module = sum(model.kind_parameters(kind) for kind in model.ahead_kinds)
    module += 2 * model.hidden**2 + 3 * model.hidden
    assert (model.parameters + module) / 1e9 == pytest.approx(WITH_AHEAD[name], abs=0.5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pattern": "M*-X"}, "pattern has a layer 'X'; there are M Mamba-2, \\* attention"),
        ({"pattern": "M*-"}, "pattern has 3 letters for 4 layers, where each has one: write `layers: 3`, or"),
        ({"mamba": None}, "layers have Mamba-2: give mamba"),
        ({"experts": None}, "layers have experts: give experts"),
        ({"heads": 0, "kv_heads": None}, "layers have attention: give heads"),
        ({"ffn": 0}, "layers have an MLP: give ffn"),
        ({"pattern": "**-E"}, "mamba: no layer is one"),
        (
            {"pattern": None, "mamba": None, "ahead_pattern": "*E"},
            "ahead_pattern is of models with",
        ),
        ({"gated": True, "squared_relu": True}, "squared_relu is of two matrices: write `gated: false`"),
        ({"mamba": TINY["mamba"] | {"groups": 3}}, "heads 8 isn't a multiple of groups 3"),
    ],
)
def test_sizes_that_make_no_model_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TransformerModel.model_validate({k: v for k, v in (TINY | changes).items() if k != "kind"})
