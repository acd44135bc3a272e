"""Measured times of further tokens beside decode steps: ``python -m tests.lab.validation.decode``.

GPUs by their files, nothing fitted to these rows. Where requests come one after another, others' prompts are
read between a request's tokens, so a token takes a decode step of all requests, at the middle of the answers,
and a prefill's share: (requests - 1) / answer's length of one. vLLM and TensorRT-LLM put a prompt into a
step, which then takes as long as the prompt; SGLang takes turns. Rows whose share is over a quarter, or whose
caches don't fit, say little of decoding and are left out.

Sources are in the table and in ``tests/data/README.md``. Everything is in memory at once in those of
aiconfigurator that are taken, and was in the others. ``--rows``: each row.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from cosim.context import HERE
from cosim.gpu.catalogue import read
from cosim.models.catalogue.workload import ModelWorkload
from cosim.pattern.nccl import Nccl
from tests.inputs import find
from tests.lab.validation.closed import Cluster, iteration_s

TABLE = find("measured/serving/decode.csv")
ROOM = 0.85
"""Of a GPU's memory for weights and caches: 0.9 with activations."""
SIGMA, OTHER = 0.05, 0.1
"""One sigma of a step by ``preset: vllm-0.19``, and without a preset."""
PREFILL = 0.25
"""Of a token's time at most."""
_QWEN3 = {
    "kind": "transformer", "name": "Qwen3 32B", "layers": 64, "hidden": 5120, "heads": 64, "kv_heads": 8,
    "head_dim": 128, "head_norms": True, "ffn": 25600, "vocabulary": 151936, "sequence": 4096,
}  # fmt: skip
_MODELS: dict[str, Any] = {
    "Qwen/Qwen3-32B": _QWEN3,
    "meta-llama/Llama-3.1-70B": "llama3-70b",
    "meta-llama/Llama-3.1-8B": "llama3-8b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3-8b",
}


@dataclass(frozen=True)
class Row:
    """``requests`` at once, of a prompt and an answer; a further token's milliseconds."""

    gpu: str
    engine: str
    model: str
    tp: int
    recipe: str | None
    requests: int
    prompt: int
    answer: int
    measured: float

    def _took(self, task: str, **given: Any) -> float:
        return _milliseconds(self.gpu, self.model, self.tp, self.recipe, task, tuple(given.items()))

    @property
    def decode(self) -> float:
        """Milliseconds of a step of all requests."""
        return self._took("decode", batch=self.requests, sequence=self.prompt + self.answer // 2)

    @property
    def prefill(self) -> float:
        """Others' prompts, milliseconds for each token."""
        if self.requests == 1:
            return 0.0
        more = self._took("prefill", batch=1, sequence=self.prompt)
        if self.engine != "sglang":  # a step's tokens and a prompt's are one batch
            more = max(more - self.decode, 0.0)
        return more * (self.requests - 1) / self.answer

    @property
    def error(self) -> float:
        """Relative."""
        return (self.decode + self.prefill) / self.measured - 1

    @property
    def tells(self) -> bool:
        """Whether decoding is most of it."""
        return self.prefill <= PREFILL * (self.decode + self.prefill)

    @property
    def fits(self) -> bool:
        """Whether all requests are in memory at once."""
        given = {"batch": self.requests, "sequence": self.prompt + self.answer}
        settings = _settings(self.gpu, self.model, self.tp, self.recipe, "decode", given)
        memory = read(self.gpu).memory
        assert memory is not None
        return ModelWorkload.model_validate(settings).memory_needed() <= ROOM * memory


def _settings(
    gpu: str, model: str, tp: int, recipe: str | None, task: str, given: dict[str, Any]
) -> dict[str, Any]:
    return {
        "model": _MODELS[model], "gpu": gpu, "parallel": {"tp": tp}, "recipe": recipe,
        "task": task, "memory": "ignore", **given,
    }  # fmt: skip


@cache
def _milliseconds(
    gpu: str, model: str, tp: int, recipe: str | None, task: str, given: tuple[tuple[str, Any], ...]
) -> float:
    made = ModelWorkload.model_validate(_settings(gpu, model, tp, recipe, task, dict(given))).build(HERE)
    rate = (read(gpu).link_rate or 0) / 8
    nccl = Nccl(system="a100" if gpu == "a100-40gb" else "h100")
    return iteration_s(made, Cluster(8, rate, rate, nccl)) * 1e3


def rows() -> Iterator[Row]:
    """All that tell of decoding."""
    with TABLE.open(newline="") as file:
        for line in csv.DictReader(file):
            requests, prompt, answer = (int(line[name]) for name in ("requests", "prompt", "answer"))
            names = line["gpu"], line["engine"], line["model"], int(line["tp"]), line["recipe"] or None
            row = Row(*names, requests, prompt, answer, float(line["milliseconds"]))
            if (row.fits or "aiconfigurator" not in line["source"]) and row.tells:
                yield row


def report(found: list[Row]) -> Iterator[str]:
    """Each GPU's and engine's errors."""
    for group in dict.fromkeys((row.gpu, row.engine) for row in found):
        errors = np.array([row.error for row in found if (row.gpu, row.engine) == group])
        held = np.mean(np.abs(np.log1p(errors)) <= 1.2816 * (SIGMA if group[1] == "vllm" else OTHER))
        yield (
            f"{group[0]:12s} {group[1]:7s} {len(errors):3d} rows: mean error {np.abs(errors).mean():6.1%}, "
            f"bias {errors.mean():+6.1%}, within 15 % {np.mean(np.abs(errors) <= 0.15):4.0%}, "
            f"in the interval {held:4.0%}"
        )


def main() -> None:
    """Print it."""
    found = list(rows())
    if "--rows" in sys.argv:
        for row in found:
            print(
                f"{row.gpu:12s} {row.engine:10s} {row.model:32s} tp {row.tp} {row.recipe or 'bf16':5s} "
                f"{row.requests:3d} x {row.prompt}+{row.answer}: {row.measured:6.2f} ms, "
                f"{row.decode:6.2f} + {row.prefill:5.2f}, {row.error:+6.1%}"
            )
    print("\n".join(report(found)))


if __name__ == "__main__":
    main()
