"""torchtitan, unmodified, with its defaults: its Trainer, data loader, tokenizer, CUDA graphs, parallelisms.

Its package brings no tokenizer and no data; the smallest that it takes are written here.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from cosim.profiler.file import Profile
from cosim.profiler.launch import ProfileRequest, profile
from cosim.profiler.workload import build, named_gpu
from cosim.workload.check import check
from tests.profiler.profiled import flops, needs_torch, sizes

pytestmark = [
    needs_torch,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("torchtitan") is None, reason="needs torchtitan: pip install torchtitan"
    ),
]

LAYERS, H, F, V, S, B = 6, 256, 768, 2048, 2048, 8  # llama3_debugmodel's
TP = 2


def titan(*arguments: str, world_size: int) -> Profile:
    order = ("--module", "llama3", "--config", "llama3_debugmodel", *arguments)
    made, _ = profile(ProfileRequest("torchtitan.train", order, world_size=world_size, module=True))
    return made


@pytest.fixture(autouse=True)
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its debug configuration looks for them."""
    place = tmp_path / "tests" / "assets"
    (place / "tokenizer").mkdir(parents=True)
    (place / "c4_test").mkdir()
    words = {word: number for number, word in enumerate(["<|end|>", "<|begin|>", "to", "be", "or", "not"])}
    special = [
        {"id": words[w], "content": w, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True} for w in ("<|end|>", "<|begin|>")
    ]  # fmt: skip
    model = {"type": "WordLevel", "vocab": words, "unk_token": "<|end|>"}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
                 "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
                 "decoder": None, "model": model}  # fmt: skip
    (place / "tokenizer" / "tokenizer.json").write_text(json.dumps(tokenizer))
    (place / "tokenizer" / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<|begin|>", "eos_token": "<|end|>"})
    )
    text = json.dumps({"text": "to be or not to be " * 200})
    (place / "c4_test" / "data.json").write_text(f"{text}\n" * 64)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))


def test_its_defaults_on_64_ranks() -> None:
    made = titan("--parallelism.tensor_parallel_degree", str(TP), world_size=64)
    assert sorted(made.mesh.values()) == [TP, 64 // TP]
    tokens = B * S
    matrices = LAYERS * (4 * H * H + 3 * H * F) + H * V
    attention = LAYERS * 4 * B * S * S * H
    assert flops(made, "forward") == (2 * tokens * matrices + attention) // TP
    steps = made.programs[0].steps
    assert sum(s.graphed for s in steps) > len(steps) // 2, "forward and backward are a CUDA graph"
    scattered = sizes(made, "reduce_scatter", next(iter(made.mesh)))
    parameters = LAYERS * ((4 * H * H + 3 * H * F) // TP + 2 * H) + 2 * H * V // TP + H
    assert sum(size * n for size, n in scattered.items()) == parameters * 4
    assert any("spmd_types" in text for text in made.assumed)
    check(build(made, named_gpu("h100-sxm")))


def test_pipelines_too() -> None:
    arguments = {
        "pipeline_parallel_degree": "2",
        "tensor_parallel_degree": "2",
        "pipeline_parallel_schedule": "1F1B",
    }
    made = titan(
        *(word for name, value in arguments.items() for word in (f"--parallelism.{name}", value)),
        *("--training.local_batch_size", "2"),
        "--training.disable_cuda_graphs",
        world_size=16,
    )
    assert [p.at for p in made.programs] == [{"pp": 0}, {"pp": 1}]
    for stage in range(2):
        assert sizes(made, "send", "pp", stage) == {S * H * 2 // TP: 2}
    check(build(made, named_gpu("h100-sxm")))
