"""Two derivations of one job, compared: a PyTorch script profiled, and the model catalogue told the same.

``python -m tests.lab.validation.crosscheck [NAME...]`` profiles ``tests/profiler/scripts/titan.py`` (and
others), builds the catalogue's workload with ``framework: pytorch``, and replays both on one cluster of 8-GPU
hosts. Prints for each: FLOPs, bytes that kernels move, kernels launched, every kind of collective and message
with its count and bytes, and the iteration time; what differs is marked. Without NAME, all; ``--list`` shows
them. Exits 1 where an iteration differs by 1 % or more. Neither derivation knows of the other: the profile is
what PyTorch 2.13 dispatched, the catalogue is written from the model and from what PyTorch documents.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cosim.context import HERE
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.models.catalogue.workload import ModelWorkload
from cosim.profiler import file
from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.launch import ProfileRequest, profile
from cosim.profiler.lower import merged
from cosim.profiler.scale import without_unused
from cosim.profiler.workload import build, named_gpu
from cosim.workload.program import CPU_STREAM, Operation, OpKind, Workload

SCRIPTS = Path(__file__).resolve().parents[2] / "profiler" / "scripts"
GPU = "h100-sxm"
TOLERANCE = 0.01
SIZES = {"layers": 2, "hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 1024, "vocab": 2048, "seq": 256}
LLAMA_8B = {
    "layers": 4, "hidden": 4096, "heads": 32, "kv_heads": 8, "ffn": 14336, "vocab": 128256, "seq": 4096,
}  # fmt: skip
"""A block of Llama 3 8B, four times."""


LLAMA_70B = {
    "layers": 4, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672, "vocab": 128256, "seq": 8192,
}  # fmt: skip

GPT = {
    "norm": "layer", "gated": False, "biases": True, "positions": 256, "tied": False, "dropout": False,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A script with its arguments, and the same for the catalogue."""

    world_size: int
    parallel: Mapping[str, Any]
    arguments: tuple[str, ...] = ()
    framework: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    batch: int = 1
    micro_batches: int = 1
    script: str = "titan.py"
    axes: Mapping[str, str] = field(default_factory=dict)
    """What the catalogue calls the script's mesh axes, where names differ."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """More settings of the catalogue's workload, and the model's."""

    def request(self) -> ProfileRequest:
        """What is profiled."""
        sizes = {**SIZES, **self.sizes, "batch": self.batch}
        if self.script == "llama_blocks.py":
            del sizes["kv_heads"]
        if self.micro_batches > 1:
            sizes["microbatches"] = self.micro_batches
        numbers = [text for name, value in sizes.items() for text in (f"--{name}", str(value))]
        return ProfileRequest(
            str(SCRIPTS / self.script), (*numbers, *self.arguments), world_size=self.world_size, gpu=GPU
        )

    def workload(self) -> dict[str, Any]:
        """The catalogue's."""
        s = {**SIZES, **self.sizes}
        given = dict(self.given)
        return {
            "kind": "model",
            "model": {
                "kind": "transformer",
                "vocabulary": s["vocab"],
                "sequence": s["seq"],
                **{name: s[name] for name in ("layers", "hidden", "heads", "kv_heads", "ffn")},
                **given.pop("model", {}),
            },
            "gpu": GPU,
            "parallel": dict(self.parallel),
            "micro_batch": self.batch,
            "batch": self.batch * self.micro_batches * self._replicas,
            "memory": "ignore",
            "attention": "flash",
            "framework": {
                "kind": "pytorch",
                "norm": "fused",
                "vocabulary_parallel_loss": False,
                **self.framework,
            },
            **given,
        }

    @property
    def _replicas(self) -> int:
        return int(self.parallel.get("dp", 1)) * int(self.parallel.get("fsdp", 1))


@dataclass(frozen=True)
class Tally:
    """What one rank of each class does in an iteration."""

    flops: Counter[str]
    bytes_moved: Counter[str]
    launches: int
    exchanged: Counter[tuple[str, str, int]]
    """Kind, axis and bytes."""

    @classmethod
    def of(cls, operations: Sequence[Operation], names: Mapping[str, str]) -> Tally:
        """``names``: of axes, where others are meant."""
        flops: Counter[str] = Counter()
        moved: Counter[str] = Counter()
        for op in operations:
            flops["forward" if op.phase == "forward" else "backward"] += int(op.flops)
            moved[op.phase] += int(op.bytes_moved)
        host = named_gpu(GPU).host.operator_time
        return cls(
            flops,
            moved,
            sum(op.duration_ps // host for op in operations if op.stream == CPU_STREAM),
            Counter(
                (op.collective or op.kind.name.lower(), _where(op, names), op.size_bytes)
                for op in operations
                if op.kind is not OpKind.COMPUTE
            ),
        )


def _where(op: Operation, names: Mapping[str, str]) -> str:
    return (
        " ".join(names.get(axis, axis) for axis in op.axes)
        if op.peer is None
        else f"{op.peer.axis} {op.peer.offset:+}"
    )


@dataclass(frozen=True)
class Compared:
    """Both derivations: by stage, and iteration times in picoseconds."""

    profiled: tuple[Tally, ...]
    catalogue: tuple[Tally, ...]
    times: tuple[int, int]
    seconds: float

    @property
    def difference(self) -> float:
        """Of the catalogue's iteration time from the profile's."""
        return self.times[1] / self.times[0] - 1


def cluster(gpus: int) -> dict[str, Any]:
    """Hosts of 8 H100s on rails."""
    hosts = {
        "gpus": 8, "nvlink_rate": "450GB/s", "nvlink_latency": "300ns", "nics": 8, "nic_rate": "400Gbps",
    }  # fmt: skip
    return {
        "kind": "leaf_spine",
        "leaves": 1,
        "spines": 1,
        "endpoints_per_leaf": -(-gpus // 8) * 8,
        "latency": "500ns",
        "hosts": hosts,
    }


def iteration_ps(workload: Any, gpus: int) -> int:
    """One iteration on the cluster, through ``cosim.run``."""
    collectives = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter"), "nccl")
    scenario = Scenario.model_validate(
        {
            "topology": cluster(gpus),
            "network": "fair_share",
            "collectives": collectives,
            "jobs": [{"workload": workload}],
            "fold": "auto",
        }
    )
    found = run(scenario).summary.jobs[0].iteration_ps
    return int(found[0])


def compare(case: Case, made: Profile | None = None) -> Compared:
    """Profile (unless ``made`` already), build, and replay both."""
    start = time.perf_counter()
    if made is None:
        made, _ = profile(case.request())
    model = ModelWorkload.model_validate({k: v for k, v in case.workload().items() if k != "kind"})
    ours = model.build(HERE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.yaml"
        programs = tuple(ClassProgram(p.at, merged(p.steps)) for p in made.programs)
        file.write(without_unused(replace(made, programs=programs)), path)
        theirs = iteration_ps({"kind": "profile", "path": str(path)}, case.world_size)
    times = (theirs, iteration_ps(case.workload(), case.world_size))
    firsts = [int(np.argmax(ours.program_of == program)) for program in range(len(ours.programs))]
    profiled = _tallies(build(made, named_gpu(GPU)), firsts, case.axes)
    return Compared(profiled, _tallies(ours, firsts, {}), times, time.perf_counter() - start)


def _tallies(workload: Workload, ranks: Sequence[int], names: Mapping[str, str]) -> tuple[Tally, ...]:
    """Of some ranks' programs."""
    programs = (workload.programs[workload.program_of[rank]] for rank in ranks)
    return tuple(Tally.of(program.operations, names) for program in programs)


def _titan(text: str, parallel: Mapping[str, Any], *, world: int = 8, **more: Any) -> Case:
    return Case(world, parallel, tuple(text.split()), **more)


CASES: dict[str, Case] = {
    "fsdp": _titan("", {"fsdp": 8}),
    "fsdp-zero2": _titan("--no-reshard", {"fsdp": 8, "reshard": False}),
    "fsdp-accumulate": _titan("", {"fsdp": 8}, micro_batches=3),
    "fsdp-zero2-accumulate": _titan("--no-reshard", {"fsdp": 8, "reshard": False}, micro_batches=3),
    "fsdp-checkpoint": _titan("--checkpoint", {"fsdp": 8}, given={"recompute": "full"}, batch=2),
    "fsdp-selective": _titan(
        "--checkpoint --selective", {"fsdp": 8}, given={"recompute": "selective"}, batch=2
    ),
    "fsdp-tp-selective": _titan(
        "--checkpoint --selective --tp 2", {"fsdp": 4, "tp": 2}, given={"recompute": "selective"}
    ),
    "fsdp-every-second": _titan(
        "--checkpoint --checkpoint_every 2", {"fsdp": 8}, given={"recompute": "full"}, sizes={"layers": 4},
        framework={"checkpoint_every": 2},
    ),
    "fsdp1": _titan("--fsdp1", {"fsdp": 8}, framework={"fsdp_version": 1}),
    "fsdp1-late": _titan(
        "--fsdp1 --checkpoint --prefetch-late", {"fsdp": 8}, given={"recompute": "full"}, batch=2,
        framework={"fsdp_version": 1, "backward_prefetch": "late"}, sizes={"layers": 5},
    ),
    "fsdp1-accumulate": _titan(
        "--fsdp1", {"fsdp": 6}, world=6, micro_batches=2, framework={"fsdp_version": 1}
    ),
    "fsdp1-zero2": _titan(
        "--fsdp1 --no-reshard", {"fsdp": 8, "reshard": False}, micro_batches=3, framework={"fsdp_version": 1}
    ),
    "hsdp1": _titan("--fsdp1 --dp 2", {"dp": 2, "fsdp": 4}, framework={"fsdp_version": 1}),
    "fsdp1-forward": _titan(
        "--fsdp1 --prefetch-forward --fused-qkv --unpadded", {"fsdp": 8}, sizes={"layers": 5}, batch=2,
        framework={"fsdp_version": 1, "forward_prefetch": True, "fused_qkv": True, "unpadded": True},
    ),
    "fsdp1-to-the-end": _titan(
        "--fsdp1 --checkpoint --to-the-end --fused-qkv", {"fsdp": 8}, given={"recompute": "full"}, batch=2,
        framework={"fsdp_version": 1, "early_stop": False, "fused_qkv": True}, sizes={"layers": 4},
    ),
    "fused-qkv": _titan(
        "--fused-qkv", {"fsdp": 8}, batch=2,
        framework={"fused_qkv": True},
    ),
    "8b-fsdp1": _titan("--fsdp1", {"fsdp": 64}, world=64, sizes=LLAMA_8B, framework={"fsdp_version": 1}),
    "hsdp": _titan("--dp 2", {"dp": 2, "fsdp": 4}),
    "ddp": _titan("--dp 8", {"dp": 8}),
    "ddp-accumulate": _titan("--dp 8", {"dp": 8}, micro_batches=2),
    "ddp-bf16": _titan(
        "--dp 8 --bf16 --fused", {"dp": 8}, framework={"parameter_dtype": "bf16", "optimizer": "fused"}
    ),
    "hf-norm-sliced": _titan(
        "--hf-norm --rotary sliced", {"fsdp": 8}, framework={"norm": "written", "rotary": "sliced"}
    ),
    "chunked": _titan("--rotary chunked", {"fsdp": 8}, framework={"rotary": "chunked"}),
    "compiled": _titan("--compile", {"fsdp": 8}, framework={"compile": True}, batch=2),
    "compiled-sliced": _titan(
        "--compile --hf-norm --rotary sliced --no-reshard", {"fsdp": 8, "reshard": False}, micro_batches=3,
        framework={"compile": True, "norm": "written", "rotary": "sliced"},
    ),
    "compiled-pp": _titan(
        "--compile --pp 2 --dp 2 --rotary chunked", {"dp": 2, "fsdp": 2, "pp": 2}, micro_batches=4,
        framework={"compile": True, "rotary": "chunked"},
    ),
    "compiled-alone": _titan(
        "--compile --bf16 --fused", {}, world=1, micro_batches=2, batch=2,
        framework={"compile": True, "parameter_dtype": "bf16", "optimizer": "fused"},
    ),
    "compiled-autocast": _titan(
        "--compile --fused", {}, world=1, batch=2, sizes={"layers": 4},
        framework={"compile": True, "optimizer": "fused"},
    ),
    "compiled-autocast-halves": _titan(
        "--compile --rotary chunked", {}, world=1, micro_batches=2, sizes={"layers": 3},
        framework={"compile": True, "rotary": "chunked", "rotary_tables": "dtype"},
    ),
    "compiled-gpt": Case(
        1, {}, framework={"compile": True, "optimizer": "fused"}, sizes={"kv_heads": 8, "layers": 4},
        micro_batches=2, script="gpt_alone.py", given={"model": GPT},
    ),
    "compiled-gpt-bf16": Case(
        1, {}, ("--bf16",), {"compile": True, "optimizer": "fused", "parameter_dtype": "bf16"},
        {"kv_heads": 8, "layers": 3, "ffn": 2048}, micro_batches=2, script="gpt_alone.py",
        given={"model": GPT},
    ),
    "compiled-ddp": _titan(
        "--compile --whole-graphs --dp 8", {"dp": 8}, batch=2,
        framework={"compile": True, "optimize_ddp": False},
    ),
    "compiled-ddp-bf16": _titan(
        "--compile --whole-graphs --dp 8 --bf16 --fused --rotary chunked", {"dp": 8}, micro_batches=2,
        framework={
            "compile": True, "optimize_ddp": False, "parameter_dtype": "bf16", "optimizer": "fused",
            "rotary": "chunked",
        },
    ),
    "compiled-repeat": _titan(
        "--compile --fused --repeat", {}, world=1, batch=2, sizes={"layers": 4},
        framework={"compile": True, "optimizer": "fused", "repeat_kv": True},
    ),
    "compiled-repeat-halves": _titan(
        "--compile --repeat --rotary chunked --checkpoint", {"fsdp": 8}, given={"recompute": "full"}, batch=2,
        framework={"compile": True, "repeat_kv": True, "rotary": "chunked"},
    ),
    "compiled-repeat-selective": _titan(
        "--compile --repeat --rotary chunked --checkpoint --selective", {"fsdp": 8}, batch=2,
        given={"recompute": "selective"},
        framework={"compile": True, "repeat_kv": True, "rotary": "chunked"},
    ),
    "compiled-repeat-tp": _titan(
        "--compile --repeat --tp 2 --rotary chunked", {"fsdp": 4, "tp": 2}, batch=2,
        framework={"compile": True, "repeat_kv": True, "rotary": "chunked"},
    ),
    "compiled-tp": _titan("--compile --tp 2", {"fsdp": 4, "tp": 2}, framework={"compile": True}, batch=2),
    "compiled-tp-pp": _titan(
        "--compile --tp 2 --pp 2 --rotary chunked", {"fsdp": 2, "tp": 2, "pp": 2}, micro_batches=4,
        framework={"compile": True, "rotary": "chunked"},
    ),
    "compiled-checkpoint": _titan(
        "--compile --checkpoint", {"fsdp": 8}, given={"recompute": "full"}, framework={"compile": True},
        batch=2,
    ),
    "compiled-selective": _titan(
        "--compile --checkpoint --selective", {"fsdp": 8}, given={"recompute": "selective"},
        framework={"compile": True}, batch=2,
    ),
    "compiled-selective-halves": _titan(
        "--compile --checkpoint --selective --rotary chunked --hf-norm", {"fsdp": 8},
        given={"recompute": "selective"}, framework={"compile": True, "rotary": "chunked", "norm": "written"},
    ),
    "compiled-selective-tp": _titan(
        "--compile --checkpoint --selective --tp 2 --rotary chunked", {"fsdp": 4, "tp": 2},
        given={"recompute": "selective"}, framework={"compile": True, "rotary": "chunked"}, batch=2,
    ),
    "compiled-checkpoint-tp": _titan(
        "--compile --checkpoint --tp 2 --rotary chunked", {"fsdp": 4, "tp": 2}, given={"recompute": "full"},
        framework={"compile": True, "rotary": "chunked"},
    ),
    "8b-compiled-tp": _titan(
        "--compile --tp 8", {"fsdp": 8, "tp": 8}, world=64, sizes=LLAMA_8B, framework={"compile": True}
    ),
    "8b-compiled": _titan(
        "--compile", {"fsdp": 64}, world=64, sizes=LLAMA_8B, framework={"compile": True}
    ),
    "fsdp-tp": _titan("--tp 2", {"fsdp": 4, "tp": 2}, batch=2),
    "tp-loss-parallel": _titan(
        "--tp 4 --loss-parallel", {"fsdp": 2, "tp": 4}, framework={"vocabulary_parallel_loss": True}
    ),
    "pp": _titan("--pp 2", {"fsdp": 4, "pp": 2}, micro_batches=4),
    "gpipe": _titan("--pp 2 --schedule GPipe", {"fsdp": 4, "pp": 2, "schedule": "gpipe"}, micro_batches=4),
    "interleaved": _titan(
        "--pp 2 --chunks 2 --schedule Interleaved1F1B --no-reshard",
        {"fsdp": 4, "pp": 2, "schedule": "interleaved", "virtual_stages": 2, "reshard": False},
        micro_batches=4, sizes={"layers": 4},
    ),
    "interleaved-gathered-again": _titan(
        "--pp 2 --chunks 5 --schedule Interleaved1F1B", {"fsdp": 4, "pp": 2, "schedule": "interleaved",
        "virtual_stages": 5}, micro_batches=4, sizes={"layers": 10},
    ),
    "interleaved-one-round": _titan(
        "--pp 4 --chunks 2 --schedule Interleaved1F1B --no-reshard",
        {"fsdp": 2, "pp": 4, "schedule": "interleaved", "virtual_stages": 2, "reshard": False},
        micro_batches=6, sizes={"layers": 8},
    ),
    "looped-bfs": _titan(
        "--pp 2 --chunks 2 --schedule LoopedBFS", {"fsdp": 4, "pp": 2, "schedule": "looped_bfs",
        "virtual_stages": 2}, micro_batches=4, sizes={"layers": 4},
    ),
    "zero-bubble": _titan(
        "--pp 2 --chunks 2 --schedule InterleavedZeroBubble --no-reshard",
        {"fsdp": 2, "pp": 2, "schedule": "interleaved_zero_bubble", "virtual_stages": 2, "reshard": False},
        world=4, micro_batches=4, sizes={"layers": 4},
    ),
    "zero-bubble-one-chunk": _titan(
        "--pp 4 --schedule InterleavedZeroBubble --bf16 --fused",
        {"pp": 4, "schedule": "interleaved_zero_bubble"}, world=4, micro_batches=6, sizes={"layers": 8},
        framework={"parameter_dtype": "bf16", "optimizer": "fused"},
    ),
    "zbv": _titan(
        "--pp 4 --chunks 2 --schedule ZBVZeroBubble --hf-norm --no-reshard",
        {"fsdp": 2, "pp": 4, "schedule": "zbv", "virtual_stages": 2, "reshard": False}, micro_batches=8,
        sizes={"layers": 8},
        framework={"norm": "written"},
    ),
    "dualpipev": _titan(
        "--pp 2 --chunks 2 --tp 2 --schedule DualPipeV --no-reshard",
        {"fsdp": 2, "tp": 2, "pp": 2, "schedule": "dualpipev", "virtual_stages": 2, "reshard": False},
        micro_batches=6, sizes={"layers": 4},
    ),
    "8b-zbv": _titan(
        "--tp 4 --pp 2 --chunks 2 --schedule ZBVZeroBubble --no-reshard",
        {"fsdp": 8, "tp": 4, "pp": 2, "reshard": False, "schedule": "zbv", "virtual_stages": 2},
        world=64, sizes=LLAMA_8B, micro_batches=8,
    ),
    "8b-interleaved": _titan(
        "--tp 4 --pp 2 --chunks 2 --schedule Interleaved1F1B --no-reshard",
        {"fsdp": 8, "tp": 4, "pp": 2, "reshard": False, "schedule": "interleaved", "virtual_stages": 2},
        world=64, sizes=LLAMA_8B, micro_batches=8,
    ),
    "pp-zero2": _titan("--pp 4 --no-reshard", {"fsdp": 2, "pp": 4, "reshard": False}, micro_batches=6,
                       sizes={"layers": 8}),
    "3d": _titan("--tp 2 --pp 2", {"fsdp": 2, "tp": 2, "pp": 2}, micro_batches=4),
    "moe": _titan(
        "--experts 8 --ep 4", {"fsdp": 8, "ep": 4},
        given={"model": {"experts": {"num": 8, "top_k": 2, "ffn": 1024}}},
    ),
    "8b-fsdp": _titan("", {"fsdp": 64}, world=64, sizes=LLAMA_8B),
    "8b-fsdp-tp": _titan("--tp 8", {"fsdp": 8, "tp": 8}, world=64, sizes=LLAMA_8B),
    "8b-3d": _titan("--tp 4 --pp 2 --no-reshard", {"fsdp": 8, "tp": 4, "pp": 2, "reshard": False}, world=64,
                    sizes=LLAMA_8B, micro_batches=8),
    "moe-whole-experts": _titan(
        "--experts 8 --ep 8", {"fsdp": 8, "ep": 8},
        given={"model": {"experts": {"num": 8, "top_k": 2, "ffn": 1024}}},
    ),
    "moe-no-ep": _titan(
        "--experts 4", {"fsdp": 8}, given={"model": {"experts": {"num": 4, "top_k": 2, "ffn": 1024}}},
        micro_batches=2,
    ),
    "mixtral-ep": _titan(
        "--experts 8 --ep 8", {"fsdp": 16, "ep": 8}, world=16,
        sizes={**LLAMA_8B, "layers": 2, "vocab": 32000},
        given={"model": {"experts": {"num": 8, "top_k": 2, "ffn": 14336}}},
    ),
    "70b-hsdp-tp-pp": _titan(
        "--dp 2 --tp 8 --pp 2 --checkpoint", {"dp": 2, "fsdp": 4, "tp": 8, "pp": 2}, world=128,
        sizes={**LLAMA_70B, "layers": 4}, micro_batches=4, given={"recompute": "full"},
    ),
    "8b-blocks": Case(
        64, {"fsdp": 8, "tp": 8, "sp": True}, ("--tp", "8", "--sp"),
        {"fsdp_units": "blocks", "rotary": "none", "fp32_logits": False, "clip_gradients": False},
        {**LLAMA_8B, "kv_heads": 32, "seq": 2048}, batch=2, script="llama_blocks.py",
        axes={"dp_shard": "fsdp"},
    ),
    "8b-1f1b": Case(
        64, {"fsdp": 4, "tp": 4, "pp": 4, "reshard": False}, ("--tp", "4", "--pp", "4"),
        {"fsdp_units": "blocks", "rotary": "chunked", "merge_outputs": True},
        {**LLAMA_8B, "layers": 8}, micro_batches=8, script="llama_3d.py", axes={"dp": "fsdp"},
    ),
}  # fmt: skip


def show(name: str, found: Compared) -> None:
    """As a table."""
    print(f"\n{name}")
    print(f"  {'':<46}{'profile':>20}{'catalogue':>20}")
    for stage, (theirs, ours) in enumerate(zip(found.profiled, found.catalogue, strict=True)):
        at = f"stage {stage} " if len(found.profiled) > 1 else ""
        for phase in ("forward", "backward"):
            _row(f"{at}{phase} TFLOP", theirs.flops[phase], ours.flops[phase], 1e12)
        for phase in ("forward", "backward", "optimizer"):
            moved = theirs.bytes_moved[phase], ours.bytes_moved[phase]
            _row(f"{at}{phase} kernels' bytes, GB", *moved, 1e9)
        _row(f"{at}kernels' bytes, GB", theirs.bytes_moved.total(), ours.bytes_moved.total(), 1e9)
        _row(f"{at}launches", theirs.launches, ours.launches)
        for key in sorted({*theirs.exchanged, *ours.exchanged}):
            kind, where, size = key
            text = f"{at}{kind} {where}, {size:,} B, times"
            _row(text, theirs.exchanged[key], ours.exchanged[key])
    _row("iteration, ms", *found.times, 1e9)
    print(f"  {found.seconds:.0f} s")


def _row(text: str, theirs: int, ours: int, unit: float = 1) -> None:
    shown = "" if theirs == ours else f"  {(ours - theirs) / theirs:+.3%}" if theirs else "  only here"
    a, b = (f"{value / unit:,.6g}" if unit > 1 else f"{value:,}" for value in (theirs, ours))
    print(f"  {text:<46}{a:>20}{b:>20}{shown}")


def main(arguments: Sequence[str]) -> int:
    """Compare what is named."""
    if "--list" in arguments:
        print("\n".join(CASES))
        return 0
    unknown = [name for name in arguments if name not in CASES]
    if unknown:
        print(f"there is no case {unknown[0]}; there are: {', '.join(CASES)}", file=sys.stderr)
        return 2
    far = []
    for name in arguments or CASES:
        found = compare(CASES[name])
        show(name, found)
        if abs(found.difference) >= TOLERANCE:
            far.append(name)
    if far:
        print(f"\n{TOLERANCE:.0%} or more apart: {', '.join(far)}")
    return bool(far)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
