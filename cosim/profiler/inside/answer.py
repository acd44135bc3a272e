"""What a session recorded of one iteration, as plain values for the file beside its order."""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

from cosim.profiler.inside.processes import started

_NO_STEP = (
    "a profile is one training iteration, which ends where a torch.optim optimizer steps, or one call of"
    " transformers' generate"
)
_NO_FLOPS = (
    "an empty batch, mostly: of numbers that aren't known, or of a data set that has none; a value that isn't"
    " known reads as 0, 1.0 or False:"
)
_NOT_WRAPPED = (
    "a script that averages its gradients itself is profiled as it is; wrap the model in"
    " torch.nn.parallel.DistributedDataParallel to compare parallelisms"
)
_OWN_PROCESSES = (
    "\n  it started {} processes of its own, which are not followed: train in the process itself, as under"
    " torchrun, or with torch.multiprocessing.spawn"
)


def make_answer(session: Any) -> dict[str, Any]:
    """Kernels without repetition, operations with dependencies by number, and what was noted.

    Dependencies on what came before the iteration are left out: it had ended, or is the iteration before.
    """
    import torch
    import torch.distributed as dist

    recorder, marks = session.recorder, session.step_marks
    torch._C._set_grad_enabled(True)
    request = None
    if not marks and session.requests:
        request = session.requests[min(session.order["iteration"], len(session.requests) - 1)]
        marks = [each.end for each in session.requests]
    wanted = min(session.order["iteration"], len(marks) - 1)
    if not marks:
        return _no_step(recorder)
    if session.copies is not None and (unlike := session.copies.finish(-1 if request else wanted)):
        return {"unlike": unlike}
    if session.exchanged is not None and (missing := session.exchanged.missing()):
        return {"error": missing, "traceback": [], "hint": _NOT_WRAPPED}
    begin, end = (marks[wanted - 1] if wanted else 0), marks[wanted]
    if request is not None:
        begin = request.begin
    kernels, rows = _rows(recorder, begin, end)
    nothing = _computes_nothing(recorder, rows, kernels, begin, end)
    if nothing:
        values = [text for text in session.assumed if "isn't known" in text]
        return {"error": nothing, "traceback": [], "hint": "\n  ".join([_NO_FLOPS, *values])}
    _say_evaluation(session, begin, end)
    return {
        "rank": session.order["rank"],
        "torch": torch.__version__.partition("+")[0],
        "iteration": wanted,
        "steps": len(marks),
        "kernels": [list(k) for k in kernels],
        "operations": rows,
        "meshes": [*session.meshes, *recorder.groups.named],
        "called": [[kind, list(ranks), line] for _, kind, ranks, line in recorder.called],
        "initialized": dist.is_initialized(),
        "assumed": {**session.assumed, **{text: 1 for text, at in recorder.passing.items() if at >= begin}},
        "guesses": session.guesses,
        "stages": session.stages,
        "unknown": dict(sorted(recorder.unknown.items())),
        "unordered": recorder.unordered,
        "request": None if request is None else request.made(),
        "compiled": session.compiler.summary(begin, end),
        "breaks": session.compiler.breaks(),
        "inductor": "torch._inductor.compile_fx" in sys.modules,
        "host_copies": [recorder.host_copies, recorder.host_bytes],
        "fake_cuda": session.shim is not None,
        "seconds": time.monotonic() - session.started,
        "cpu_seconds": time.process_time() - session.begun_cpu,
        "peak_bytes": _peak_bytes(),
        "seen": len(recorder.operations),
        "copied": 0 if session.copies is None else session.copies.copied,
    }


def _peak_bytes() -> int:
    """The most memory that this process had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _no_step(recorder: Any) -> dict[str, Any]:
    """What to say of a script that never trained."""
    return {
        "error": "the script ended without an optimizer step",
        "traceback": [],
        "hint": _NO_STEP + (_OWN_PROCESSES.format(len(started)) if started else ""),
        "operations_seen": len(recorder.operations),
    }


def _say_evaluation(session: Any, begin: int, end: int) -> None:
    """Note that most of an iteration's forward is no training."""
    recorder = session.recorder
    forward = [n for n in range(begin, end) if recorder.operations[n].phase == "forward"]
    without = {n for n in recorder.without_gradients if begin <= n < end}.intersection(forward)
    if 2 * len(without) > len(forward):
        session.assume(
            f"{len(without):,} of the iteration's {len(forward):,} forward operations ask for no gradients:"
            " it holds an evaluation or a generation; --iteration picks another one"
        )


def _computes_nothing(recorder: Any, rows: list[Any], kernels: Any, begin: int, end: int) -> str:
    """What is wrong with an iteration that has matrix products without elements, or no FLOPs at all."""
    for number, name, line in recorder.empty:
        if begin <= number < end:
            return f"{line}: {name}, a matrix product without elements"
    costs = list(kernels)
    computes = any(isinstance(row[3], int) for row in rows)
    if computes and not any(costs[row[3]].flops or "attention" in costs[row[3]].kind
                            or costs[row[3]].name.startswith(("triton.", "extension.")) for row in rows
                            if isinstance(row[3], int)):  # fmt: skip
        return "the iteration has no FLOPs"
    return ""


def _rows(recorder: Any, begin: int, end: int) -> tuple[dict[Any, int], list[Any]]:
    """Kernels by number; of each operation stream, phase, dependencies, what it is, whether of a graph."""
    kernels: dict[Any, int] = {}
    rows: list[Any] = []
    last_backward = max(
        (n for n in range(begin, end) if recorder.operations[n].phase in ("backward", "recompute")),
        default=-1,
    )
    for number in range(begin, end):
        operation = recorder.operations[number]
        deps = [d - begin for d in recorder.ordering.deps[number] if d >= begin]
        phase = operation.phase
        if phase == "forward" and number > last_backward >= 0:
            phase = "optimizer"  # clipping and the like
        if operation.kernel is not None:
            place = kernels.setdefault(operation.kernel, len(kernels))
            rows.append([operation.stream, phase, deps, place, operation.graphed])
        elif operation.communication is None:
            rows.append([operation.stream, phase, deps, None, operation.graphed])
        else:
            what = operation.communication
            said = [what.kind, list(what.ranks), what.size_bytes, what.root, what.peer, what.tag]
            rows.append([operation.stream, phase, deps, said, operation.graphed])
    return kernels, rows
