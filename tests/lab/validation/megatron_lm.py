"""Megatron-LM's iteration times of Korthikanti et al. (arXiv 2205.05198, table 5), and a closed form of them.

The closed form is the usual one of an interleaved 1F1B pipeline without a network: micro-batches, and (stages
- 1) / chunks of them for filling and draining, times what the slowest stage takes for one, its
tensor-parallel exchanges included, then the optimizer. What the replay has beyond it: the host, messages
between stages, the order in which chunks come.

``python -m tests.lab.validation.megatron_lm``: the closed form beside each row, and the mean error of the
rows of 175 billion parameters and more; the full path:
``python -m tests.lab.validation.measured --megatron-lm``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cosim.gpu.catalogue import A100_80GB
from cosim.gpu.kernels import memory
from cosim.gpu.timer import GpuTimer
from cosim.models.parts import Layer
from cosim.models.transformer import Transformer
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_fit import host_s
from cosim.pattern.template import Collective
from cosim.units import PS_PER_S
from tests.lab.validation.measured_jobs import VOCABULARY, megatron
from tests.lab.validation.surrogate import NVLINK

_ADAM_BYTES = 30


@dataclass(frozen=True)
class Published:
    """A row of the table; seconds with full, and with selective recomputation."""

    name: str
    layers: int
    hidden: int
    heads: int
    tp: int
    pp: int
    chunks: int
    batch: int
    micro_batch: int
    full_s: float
    selective_s: float

    def measured_s(self, selective: bool) -> float:
        """With full or with selective recomputation."""
        return self.selective_s if selective else self.full_s


MEGATRON_LM = (
    Published("22B", 48, 6144, 64, 8, 1, 1, 4, 4, 1.42, 1.10),
    Published("175B", 96, 12288, 96, 8, 8, 3, 64, 1, 18.13, 13.75),
    Published("530B", 105, 20480, 128, 8, 35, 3, 280, 1, 49.05, 37.83),
    Published("1T", 128, 25600, 160, 8, 64, 1, 512, 1, 94.42, 71.49),
)


def job(entry: Published, selective: bool) -> dict[str, Any]:
    """The workload of a row, on ``tp * pp`` GPUs."""
    row = {
        "layers": entry.layers,
        "hidden": entry.hidden,
        "heads": entry.heads,
        "sequence": 2048,
        "micro_batch": entry.micro_batch,
        "global_batch": entry.batch,
        "tp": entry.tp,
        "dp": 1,
        "pp": entry.pp,
        "gpus": entry.tp * entry.pp,
    }
    made = megatron(row) | {
        "vocabulary": VOCABULARY,
        "recompute": "selective" if selective else "full",
        "sequence_parallel": selective,
        "synchronous_passes": False,
        "synchronous_exchanges": False,
    }
    if entry.chunks != 1:
        made |= {"schedule": "interleaved", "virtual_stages": entry.chunks}
    return made


def closed_s(entry: Published, selective: bool) -> float:
    """Seconds by the closed form."""
    settings = {name: value for name, value in job(entry, selective).items() if name != "kind"}
    model, timer, nccl = Transformer.model_validate(settings), GpuTimer(A100_80GB, "fp16"), Nccl()

    def layer_s(layer: Layer) -> float:
        took = 0.0
        for piece in (*layer.forward, *layer.recompute, *layer.backward):
            took += timer.kernels_ps(piece.kernels) / PS_PER_S
            if piece.then is not None:
                kind = Collective(piece.then.collective)
                took += host_s(nccl, kind, entry.tp, piece.then.size_bytes, NVLINK)
        return took

    stages = model.model.job().stages
    slowest = max(sum(layer_s(layer) for chunk in chunks for layer in chunk) for chunks in stages)
    most = max(sum(layer.num_parameters for chunk in chunks for layer in chunk) for chunks in stages)
    optimizer = timer.kernel_ps(memory(most * _ADAM_BYTES)) + timer.step_ps()
    passes = model.micro_batches + (entry.pp - 1) / entry.chunks
    return slowest * passes + optimizer / PS_PER_S


def main() -> None:
    """Each row, measured and by the closed form; nothing was fitted to them."""
    large: list[float] = []
    for entry in MEGATRON_LM:
        for selective in (False, True):
            took, measured = closed_s(entry, selective), entry.measured_s(selective)
            error = took / measured - 1
            what = "selective" if selective else "full"
            print(f"{entry.name:5s} {what:10s} {took:7.2f} s, measured {measured:6.2f} s, {error:+.1%}")
            if entry.pp > 1:
                large.append(abs(error))
    print(f"mean error of the {len(large)} of 175B and more: {sum(large) / len(large):.1%}")


if __name__ == "__main__":
    main()
