"""Profiles of big models, with what they took and whether their bytes are those of the closed form.

``python -m tests.lab.benchmarks.profile llama405b``: Llama-3-405B (126 layers; plain PyTorch in
``tests/profiler/scripts/llama_3d.py``) as rank 0 of each stage of 512 ranks, FSDP2 16 x TP 8 x PP 4;
``llama70b`` is that of 80 layers. With ``--every-layer`` none is a copy of others alike, and the file is the
same. With ``--swept``, layers are predicted from two or three of each stage, one more, and (held out) one
more, and the file is the same but for ``made``. ``time`` before the command tells processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from cosim.profiler.file import Profile, read, write
from cosim.profiler.launch import ProfileRequest
from cosim.profiler.scale import profile_scaled
from cosim.profiler.workload import build, named_gpu
from cosim.workload.check import check

SCRIPT = Path(__file__).parents[2] / "profiler" / "scripts" / "llama_3d.py"


@dataclass(frozen=True)
class Model:
    """Sizes, as the script's arguments have them."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    seq: int
    tp: int
    pp: int
    dp: int
    microbatches: int
    batch: int = 1

    @property
    def world_size(self) -> int:
        return self.tp * self.pp * self.dp

    def arguments(self) -> tuple[str, ...]:
        return tuple(f"--{name}={getattr(self, name)}" for name in self.__dataclass_fields__ if name != "dp")

    def layers_of(self, stage: int) -> int:
        each = -(-self.layers // self.pp)
        short = self.pp * each - self.layers
        return each - (short > 0) * (stage == self.pp - 1) - (short > 1) * (stage == 0)


LLAMA_405B = Model(126, 16384, 128, 8, 53248, 128256, 8192, tp=8, pp=4, dp=16, microbatches=4)
LLAMA_70B = Model(80, 8192, 64, 8, 28672, 128256, 8192, tp=8, pp=4, dp=16, microbatches=4)
TINY = Model(4, 256, 8, 4, 512, 1024, 128, tp=2, pp=2, dp=2, microbatches=2)
MODELS = {"llama405b": LLAMA_405B, "llama70b": LLAMA_70B, "tiny": TINY}


def expected(model: Model, stage: int) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """Counts and bytes of each collective by kind and axis, and FLOPs, of a rank of a stage; closed forms."""
    first, last = stage == 0, stage == model.pp - 1
    layers, m, tp, h = model.layers_of(stage), model.microbatches, model.tp, model.hidden
    tokens = model.batch * model.seq
    hidden, logits = tokens * h * 2, tokens * model.vocab * 2
    kv = model.kv_heads * h // model.heads
    matrices = 2 * h * h + 2 * h * kv + 3 * h * model.ffn
    block = matrices // tp + 2 * h
    root = (first + last) * model.vocab * h // tp + last * h
    count: Counter[tuple[str, str]] = Counter()
    size: Counter[tuple[str, str]] = Counter()
    borders = (not first) + (not last)
    groups = layers + (root > 0)
    for kind, axis, times, total in (
        ("all_gather", "dp", groups, 2 * (layers * block + root) // model.dp),
        ("reduce_scatter", "dp", groups, 4 * (layers * block + root)),
        (
            "all_gather",
            "tp",
            m * (4 * layers + first + 2 * last),
            m * ((4 * layers + first + last) * hidden + last * logits) // tp,
        ),
        ("reduce_scatter", "tp", m * (4 * layers + first + last), m * (4 * layers + first + last) * hidden),
        ("send", "pp", m * borders, m * borders * hidden // tp),
        ("recv", "pp", m * borders, m * borders * hidden // tp),
    ):
        count[kind, axis], size[kind, axis] = times, total
    products = 2 * tokens * (layers * matrices + last * h * model.vocab) // tp
    attention = layers * 4 * model.batch * model.seq**2 * h // tp
    return count, size, m * (3 * products + attention * 7 // 2)


def found(profile: Profile, stage: int) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """The same of a profile; sums of norms and of gradients of norms' weights are left out."""
    count: Counter[tuple[str, str]] = Counter()
    size: Counter[tuple[str, str]] = Counter()
    flops = 0
    for step in profile.programs[stage].steps:
        flops += sum(profile.kernels[k][3] * times for k, times in step.kernels)
        if step.kind not in ("compute", "all_reduce"):
            axis = str(step.peer[0]) if step.peer else str(step.group[0])
            count[step.kind, axis] += 1
            size[step.kind, axis] += step.size_bytes
    return count, size, flops


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=[*MODELS])
    parser.add_argument("--swept", action="store_true", help="predict the layers from small profiles")
    parser.add_argument("--every-layer", action="store_true", help="copy none that are alike")
    parser.add_argument("--out", type=Path, default=Path("profile.yaml"))
    options = parser.parse_args()
    model = MODELS[options.model]
    request = ProfileRequest(str(SCRIPT), model.arguments(), world_size=model.world_size)
    sweep: list[str] = []
    predict: list[str] = []
    if options.swept:  # as many layers fewer than the stages hold in all as the model has
        short = model.pp * model.layers_of(1) - model.layers
        arguments = tuple(a for a in model.arguments() if not a.startswith("--layers"))
        request = ProfileRequest(str(SCRIPT), arguments, world_size=model.world_size)
        least = 2 + (short > 0)  # no stage of one layer: its first is its last
        sizes = [k * model.pp - short for k in range(least, least + 3)]
        sweep, predict = [f"layers={','.join(map(str, sizes))}"], [f"layers={model.layers}"]
    request = replace(request, every_layer=options.every_layer)
    begin = time.perf_counter()
    made, cost = profile_scaled(
        request, sweep, predict, lambda text: print(text, file=sys.stderr, flush=True)
    )
    profiled = time.perf_counter()
    write(made, options.out)
    workload = build(read(options.out), named_gpu("h100-sxm"))
    check(workload)
    built = time.perf_counter()
    for stage in range(model.pp):
        want, have = expected(model, stage), found(made, stage)
        same = "equal to the closed form" if want == have else f"NOT the closed form: {want} but {have}"
        total = sum(have[1].values())
        steps, talks = len(made.programs[stage].steps), sum(have[0].values())
        print(f"stage {stage}: {model.layers_of(stage)} layers, {have[2] / 1e12:.6g} TFLOP,"
              f" {total / 1e9:.6g} GB in {talks} communications, {steps} operations: {same}")  # fmt: skip
    print(f"{model.world_size} ranks, mesh {made.mesh}; profiled in {profiled - begin:.0f} s with at most"
          f" {cost.peak_bytes / 1e9:.2f} GB, {cost.kernels} operators seen; file of"
          f" {options.out.stat().st_size / 1e6:.2f} MB"
          f" read, timed and checked in {built - profiled:.1f} s")  # fmt: skip
    for line in made.made.get("scaled", []):
        print(line)


if __name__ == "__main__":
    main()
