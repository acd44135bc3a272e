"""What a Kineto trace says of an iteration as a whole: how long it took, and its kernels by kind.

A kernel's kind is told by its name, as the libraries give them: cuBLAS, CUTLASS, cuDNN, FlashAttention,
Triton, mamba_ssm. What no pattern knows is bounded by memory, as element-wise kernels, norms and reductions
are. NCCL's kernels wait for other ranks, and copies from and to the host for the host: neither counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from cosim.errors import Location, WorkloadError
from cosim.experiment.measured_jobs import MeasuredIteration
from cosim.formats.pytorch import kineto
from cosim.formats.pytorch.files import open_traces, rank_in_name
from cosim.formats.pytorch.kineto import Timeline, Work
from cosim.formats.pytorch.libraries import every_library
from cosim.gpu.kernels import KernelKind
from cosim.units import PS_PER_S

_ATTENTION = re.compile(
    r"flash|fmha|sdpa|_attn_|mha_|efficient_attention|flex_attention|compute_dot_do_o|convert_dq_to_16bits",
    re.IGNORECASE,
)
_BACKWARD = re.compile(r"bwd|backward|dgrad|bprop|compute_dot_do_o|convert_dq_to", re.IGNORECASE)
_FUSED = re.compile(r"triton_(poi|per|red|for)_")  # Inductor names them by all that is around them
_PRODUCT = re.compile(
    r"gemm|gemv|cutlass|cublas|nvjet|xmma|splitk|cijk_|wgrad|dgrad|convolve|conv2d|conv3d|implicit_con|winograd"
    r"|fft2d_r2c_|scudnn|_cudnn_|ampere_s|volta_s|triton_.*_mm_|bmm_", re.IGNORECASE,
)  # fmt: skip
_SCAN = re.compile(r"_chunk_scan_|_chunk_state_|_bmm_chunk_")  # mamba_ssm's kernels that have products
_OUTSIDE = re.compile(r"HtoD|DtoH|PtoP|HtoH|Host -> |-> Host", re.IGNORECASE)


def kind_of(work: Work) -> KernelKind | None:
    """What bounds a kernel, by its name; None: it waits for others than this GPU."""
    if work.library or (work.copy and _OUTSIDE.search(work.name)):
        return None
    name = work.name.partition("<")[0]  # types of its arguments may name anything
    if _FUSED.match(name):
        return KernelKind.MEMORY
    if _ATTENTION.search(name):
        return KernelKind.ATTENTION_BACKWARD if _BACKWARD.search(name) else KernelKind.ATTENTION
    if _SCAN.search(name):
        return KernelKind.SCAN
    return KernelKind.MATMUL if not work.copy and _PRODUCT.search(name) else KernelKind.MEMORY


def read_iteration(path: Path) -> MeasuredIteration:
    """The mean of the steps (``ProfilerStep#N``) of all traces at a place, one trace a rank.

    Returns
    -------
    MeasuredIteration
        Seconds of a step: of the host's or of the GPU's work for it, whichever is longer; and of its kernels,
        by kind.

    Raises
    ------
    WorkloadError
        No trace, a damaged one, one without steps or kernels, two of a rank.
    """
    found: dict[int, tuple[float, dict[KernelKind, float]]] = {}
    with closing(open_traces(path)) as files:
        for name, text in files:
            timeline = kineto.read(text, name, every_library())
            rank = timeline.rank
            if rank is None:
                rank = rank_in_name(name) or 0
            if rank in found:
                raise WorkloadError(f"is of rank {rank}, of which there is another", location=Location(name))
            found[rank] = _of_steps(timeline)
    kernels: Counter[KernelKind] = Counter()
    for _, taken in found.values():
        kernels.update(taken)
    return MeasuredIteration(
        sum(seconds for seconds, _ in found.values()) / len(found),
        {kind: kernels[kind] / len(found) for kind in KernelKind if kernels[kind]},
        tuple(sorted(found)),
    )


def _of_steps(timeline: Timeline) -> tuple[float, dict[KernelKind, float]]:
    if not timeline.steps:
        raise WorkloadError(
            "has no ProfilerStep, so nobody knows where an iteration ends",
            location=Location(timeline.file),
            hint="call prof.step() after each iteration of the script",
        )
    last = max(timeline.steps)  # and those before it without a gap: a schedule may repeat itself
    steps = [timeline.steps[last]]
    while (number := last - len(steps)) in timeline.steps:
        steps.insert(0, timeline.steps[number])
    begin, end = steps[0].begin, steps[-1].end
    works = kineto.window(timeline, begin, end).works
    kernels: Counter[KernelKind] = Counter()
    for kind, work in _counted(works):
        kernels[kind] += work.end - work.begin
    if not kernels:
        raise WorkloadError(
            "has no kernels in its steps",
            location=Location(timeline.file),
            hint="profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
        )
    taken = max(end - begin, max(work.end for work in works) - min(work.begin for work in works))
    each = len(steps) * PS_PER_S
    return taken / each, {kind: total / each for kind, total in kernels.items()}


def _counted(works: list[Work]) -> Iterator[tuple[KernelKind, Work]]:
    for work in works:
        if (kind := kind_of(work)) is not None:
            yield kind, work
