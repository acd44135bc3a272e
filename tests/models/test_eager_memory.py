"""``framework: pytorch``: layers keep what autograd saves, moments of an iteration are PyTorch's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cosim.gpu.catalogue import read
from cosim.models.catalogue.memory import Memory
from cosim.models.catalogue.workload import ModelWorkload
from cosim.profiler.launch import ProfileRequest, profile
from tests.inputs import absent
from tests.lab.validation import fsdp_jobs
from tests.lab.validation.crosscheck import GPT, Case
from tests.profiler.profiled import SCRIPTS, needs_torch

HALF = {"parameter_dtype": "bf16"}
TABLES = {"rotary": "chunked", "rotary_tables": "dtype"}
HALVES = {**TABLES, "compile": True, "repeat_kv": True}
EXPERTS = {"model": {"experts": {"num": 4, "top_k": 2, "ffn": 1024}}}
SMALL = 200
"""Bytes of single numbers: seeds, sums of targets, where groups of rows end."""

needs_table = pytest.mark.skipif(bool(absent("measured")), reason=absent("measured"))


def spec(**settings: Any) -> ModelWorkload:
    model = {
        "kind": "gpt3-1.7b", "layers": 3, "hidden": 256, "heads": 4, "ffn": 1024, "vocabulary": 8192,
        "sequence": 128, "positions": 128, "tied": False, "dropout": False, **settings.pop("model", {}),
    }  # fmt: skip
    framework = {"kind": "pytorch", **settings.pop("framework", {})}
    values = {"gpu": "h100-sxm", "micro_batch": 2, "memory": "ignore", **settings}
    return ModelWorkload.model_validate({"model": model, "framework": framework, **values})


def moments(**settings: Any) -> dict[str, int]:
    made = spec(**settings).job().memory
    return {made.moment: made.total, **dict(made.other_moments)}


@needs_torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "framework", "given"),
    [
        ("--rotary chunked", TABLES, {}),
        ("--bf16", HALF, {}),
        ("--bf16 --hf-norm --rotary sliced", {**HALF, "norm": "written", "rotary": "sliced"}, {}),
        ("--checkpoint", {}, {"recompute": "full"}),
        ("--bf16 --hf-norm --experts 4", {**HALF, "norm": "written"}, EXPERTS),
        ("--compile --bf16", {**HALF, "compile": True}, {}),
        ("--compile --rotary chunked --repeat", HALVES, {}),
        ("", {"compile": True}, {"model": {**GPT, "kv_heads": 8}}),
        ("--bf16", {**HALF, "compile": True}, {"model": {**GPT, "kv_heads": 8}}),
    ],
    ids=[
        "autocast",
        "bf16",
        "written",
        "checkpoint",
        "experts",
        "compiled",
        "compiled-autocast",
        "compiled-gpt",
        "compiled-gpt-bf16",
    ],
)
def test_layers_keep_what_autograd_saves(
    arguments: str, framework: dict[str, Any], given: dict[str, Any], tmp_path: Path
) -> None:
    """To the byte, but for tokens and tables of rotations, which all layers have together."""
    case = Case(1, {}, framework=framework, given=given, batch=2)
    sizes = case.request().arguments
    gpt = "positions" in given.get("model", {})
    out, script = str(tmp_path / "saved.json"), str(SCRIPTS / ("gpt_alone.py" if gpt else "titan.py"))
    more = tuple(arguments.split())
    profile(
        ProfileRequest(str(SCRIPTS / "saved.py"), (out, script, *sizes, *more), world_size=1, gpu="h100-sxm")
    )
    theirs = sum(json.loads(Path(out).read_text()))
    settings = {name: value for name, value in case.workload().items() if name != "kind"}
    ((layers,),) = ModelWorkload.model_validate(settings).job().stages
    tokens, tables = 2 * 256 * 8, 256 * 8 if gpt else 256 * 64 * 2 * 2
    assert theirs - tokens - tables - SMALL < sum(layer.keeps for layer in layers) <= theirs - tokens - tables


def _tracked(words: int, micro_batches: int, *, checkpointed: bool, foreach: bool) -> int:
    """The most that PyTorch's tracker counts of a GPT in bf16, in its second iteration."""
    import torch
    from torch import nn
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.LayerNorm(256), nn.LayerNorm(256)
            self.q, self.k, self.v, self.o = (nn.Linear(256, 256) for _ in range(4))
            self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 256)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inner = self.a(x)
            q, k, v = (w(inner).unflatten(-1, (4, -1)).transpose(1, 2) for w in (self.q, self.k, self.v))
            chosen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.o(chosen.transpose(1, 2).flatten(-2))
            return x + self.down(functional.gelu(self.up(self.b(x))))

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(words, 256), nn.Embedding(128, 256)
            self.blocks = nn.ModuleList(Block() for _ in range(3))
            self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, words, bias=False)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.words(tokens) + self.places(torch.arange(128))
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False) if checkpointed else block(x)
            return self.head(self.norm(x))

    model = Model().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=foreach, fused=not foreach)
    tracker = MemTracker()
    tracker.track_external(model, optimizer)
    with tracker:
        for _ in range(2):
            for _ in range(micro_batches):
                tokens = torch.randint(words, (2, 128))
                logits = model(tokens)
                functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten()).backward()
                tracker.reset_mod_stats()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    (found,) = tracker.get_tracker_snapshot("peak").values()
    return int(found["Total"])


@needs_torch
@pytest.mark.parametrize(
    ("words", "micro_batches", "recompute", "optimizer", "moment"),
    [
        (8192, 1, "none", "fused", "the loss's backward"),
        pytest.param(8192, 2, "none", "fused", "the loss's backward", marks=pytest.mark.slow),
        pytest.param(2048, 2, "none", "foreach", "the loss's backward", marks=pytest.mark.slow),
        pytest.param(512, 1, "full", "fused", "the blocks' backward", marks=pytest.mark.slow),
        pytest.param(512, 2, "full", "fused", "the blocks' backward", marks=pytest.mark.slow),
        pytest.param(512, 1, "full", "foreach", "the optimizer's step", marks=pytest.mark.slow),
    ],
)
def test_an_iteration_is_fullest_when_and_as_pytorchs_tracker_says(
    words: int, micro_batches: int, recompute: str, optimizer: str, moment: str
) -> None:
    made = spec(
        model={"vocabulary": words}, batch=2 * micro_batches, recompute=recompute,
        framework={"parameter_dtype": "bf16", "optimizer": optimizer},
    ).job().memory  # fmt: skip
    theirs = _tracked(words, micro_batches, checkpointed=recompute == "full", foreach=optimizer == "foreach")
    assert made.moment == moment
    assert made.total == pytest.approx(theirs, rel=5e-4)


def test_a_loss_has_fourteen_bytes_a_logit_or_a_fused_one_four() -> None:
    numbers = 64 * 128 * 8192
    eager, fused = (
        moments(framework={"fused_loss": how}, micro_batch=64)["the loss's backward"] for how in (False, True)
    )
    assert eager - fused == pytest.approx(10 * numbers, rel=0.02)  # then the head's product needs more


@needs_table
def test_jobs_that_ran_fit() -> None:
    """llm-foundry's, of which the fullest were said to need 1.12 of their GPU's memory."""
    shares = [
        fsdp_jobs.workload(row).memory_needed() / (read(row.gpu).memory or 1) for row in fsdp_jobs.rows()
    ]
    assert max(shares) < 0.95


def test_what_is_kept_of_gradients_and_buckets() -> None:
    alone = spec(framework=HALF).job()
    own = sum(layer.num_parameters for chunk in alone.stages[0] for layer in chunk) * 2
    once, again, replicas = (
        moments(framework=HALF),
        moments(framework=HALF, batch=4),
        moments(framework=HALF, parallel={"dp": 2}),
    )
    loss, step = "the loss's backward", "the optimizer's step"
    assert again[loss] - once[loss] == own  # an earlier micro-batch's
    assert again[step] == once[step]
    assert {name: replicas[name] - once[name] for name in once} == dict.fromkeys(once, own)  # DDP's buckets


def test_metrics_have_logits_and_their_log_softmax_in_fp32() -> None:
    numbers = 2 * 128 * 8192
    found = moments(framework={"fused_loss": True, "metrics": 2, "optimizer": "fused"})
    assert found["metrics"] - found["the optimizer's step"] == 8 * numbers


def test_moments_are_told() -> None:
    made = spec().job().memory
    assert isinstance(made, Memory)
    text = str(made)
    assert f" in {made.moment}: weights" in text
    for name, _ in made.other_moments:
        assert f"; in {name} " in text
    assert len({made.moment, *(name for name, _ in made.other_moments)}) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"framework": {"fused_loss": True}, "parallel": {"tp": 2}}, "fused_loss is of whole logits"),
        ({"framework": {"metrics": 2}, "parallel": {"tp": 2}}, "metrics is of whole logits"),
        ({"framework": {"metrics": -1}}, "metrics"),
        ({"framework": {"fused_loss": "liger"}}, "fused_loss"),
    ],
)
def test_what_cant_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        spec(**settings)


def test_settings_without_effect_are_told() -> None:
    idle = spec(framework={"fused_loss": True, "fp32_logits": True, "optimize_ddp": False}).idle_settings()
    assert dict(idle).keys() == {"framework"}
    assert {why.split(":")[0] for _, why in idle} == {"fp32_logits", "optimize_ddp"}
