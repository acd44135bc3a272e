"""Megatron-LM's own script profiled, and the catalogue told ``framework: megatron``: the same job?

``COSIM_SCRIPTS=FOLDER python -m tests.lab.validation.crosscheck_megatron [NAME...]`` profiles FOLDER's
``Megatron-LM/pretrain_gpt.py`` (its version: ``tests.lab.benchmarks.public_scripts_data``) with its local
layers, which need no CUDA, and replays both on one cluster of 8-GPU hosts. Prints FLOPs, kernels' bytes and
launches, what is exchanged, and iteration times. The catalogue is told ``transformer_impl: local``; ``dp``
and ``pp4`` were profiled after that had been written.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.profiler.launch import ProfileRequest
from tests.lab.validation.crosscheck import GPU, TOLERANCE, Case, Compared, Tally, compare, show

_FIXED = (
    "--train-iters 5 --lr 1e-4 --mock-data --tokenizer-type NullTokenizer --bf16 --transformer-impl local"
    " --no-gradient-accumulation-fusion --no-persist-layer-norm --no-masked-softmax-fusion --no-rope-fusion"
    " --eval-iters 1 --eval-interval 100 --split 99,1,0 --log-interval 1"
)


@dataclass(frozen=True)
class MegatronCase(Case):
    """GPT as Megatron-LM has it: learned positions, biases, GeLU, dropout, the head tied to the embedding."""

    def request(self) -> ProfileRequest:
        """What is profiled."""
        s, p = self.sizes, self.parallel
        told = {
            "num-layers": s["layers"], "hidden-size": s["hidden"], "num-attention-heads": s["heads"],
            "seq-length": s["seq"], "max-position-embeddings": s["seq"], "micro-batch-size": self.batch,
            "vocab-size": s["vocab"] - 1, "tensor-model-parallel-size": p["tp"],
            "pipeline-model-parallel-size": p.get("pp", 1),
            "global-batch-size": self.batch * self.micro_batches * self._replicas,
        }  # fmt: skip
        words = [text for name, value in told.items() for text in (f"--{name}", str(value))]
        return ProfileRequest(
            str(script()), (*words, *_FIXED.split(), *self.arguments), world_size=self.world_size, gpu=GPU
        )

    def workload(self) -> dict[str, Any]:
        """The catalogue's."""
        s = self.sizes
        return {
            "kind": "model",
            "model": {
                "kind": "transformer", "vocabulary": s["vocab"], "sequence": s["seq"], "layers": s["layers"],
                "hidden": s["hidden"], "heads": s["heads"], "ffn": 4 * s["hidden"], "gated": False,
                "norm": "layer", "biases": True, "tied": True, "positions": s["seq"], "dropout": True,
            },
            "gpu": GPU,
            "parallel": {"sp": False, **self.parallel},
            "micro_batch": self.batch,
            "batch": self.batch * self.micro_batches * self._replicas,
            "memory": "ignore",
            "attention": "unfused",
            "overlap_gradients": False,
            "framework": {"kind": "megatron", "transformer_impl": "local"},
        }  # fmt: skip


SMALL = {"layers": 4, "hidden": 512, "heads": 8, "seq": 256, "vocab": 1024}
GPT_13B = {"layers": 4, "hidden": 5120, "heads": 40, "seq": 2048, "vocab": 51200}
"""Four of GPT-3 13B's layers."""
CASES = {
    "tp": MegatronCase(8, {"dp": 4, "tp": 2}, sizes=SMALL, batch=2, micro_batches=2),
    "tp-pp": MegatronCase(8, {"dp": 2, "tp": 2, "pp": 2}, sizes=SMALL, batch=2, micro_batches=4),
    "13b-tp": MegatronCase(8, {"dp": 2, "tp": 4}, sizes=GPT_13B, micro_batches=4),
    "13b-tp2": MegatronCase(8, {"dp": 4, "tp": 2}, sizes=GPT_13B, micro_batches=4),
    "dp": MegatronCase(8, {"dp": 8, "tp": 1}, sizes={**SMALL, "hidden": 768, "heads": 12}, batch=3),
    "pp4": MegatronCase(8, {"tp": 2, "pp": 4}, sizes=SMALL, micro_batches=6),
}


def script() -> Path:
    """Megatron-LM's, in the folder that COSIM_SCRIPTS names."""
    return Path(os.environ.get("COSIM_SCRIPTS", "."), "Megatron-LM", "pretrain_gpt.py").resolve()


@contextmanager
def surroundings() -> Iterator[None]:
    """What Megatron-LM wants of the environment."""
    before = dict(os.environ)
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    shim = script().parents[1] / "python311"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(shim), before.get("PYTHONPATH", "")])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def exchanged(tally: Tally) -> Counter[tuple[str, str, int]]:
    """Of a stage; a tied embedding's all-reduce of first and last stage counts as two halves sent both ways,
    which it is in the catalogue where there are stages between.
    """
    kept: Counter[tuple[str, str, int]] = Counter()
    for (kind, where, size), count in tally.exchanged.items():
        if kind == "all_reduce" and where in ("", "pp"):
            kept["pair", "pp", size // 2] += 4 * count
        elif kind in ("send", "recv"):
            kept["pair", "pp", size] += count
        else:
            kept[kind, where, size] += count
    return kept


def alike(found: Compared) -> bool:
    """Whether FLOPs, kernels' bytes, launches and exchanges of each stage are equal."""
    return all(
        (one.flops, one.bytes_moved, one.launches, exchanged(one))
        == (other.flops, other.bytes_moved, other.launches, exchanged(other))
        for one, other in zip(found.profiled, found.catalogue, strict=True)
    )


def made(name: str) -> Compared:
    """A case, compared."""
    with surroundings():
        return compare(CASES[name])


def main(names: Sequence[str]) -> int:
    """Print what is named; 1 where something differs, or times by 1 % or more."""
    differ = []
    for name in names or CASES:
        found = made(name)
        show(name, found)
        if not alike(found) or abs(found.difference) >= TOLERANCE:
            differ.append(name)
    print(f"\nWork, exchanges or times differ: {', '.join(differ) or 'nowhere'}")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
