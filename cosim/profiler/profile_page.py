"""What ``cosim profile`` prints: what was found, in a page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.launch import UNKNOWNS, ProfilingCost
from cosim.profiler.lower import ProfiledOperation
from cosim.profiler.workload import alone_ps
from cosim.units import format_size, format_time


def tell(profile: Profile, cost: ProfilingCost, path: Path, plain: Profile | None = None) -> str:
    """FLOPs by phase, communication by kind and group, what was assumed; ``plain``: the same without what was
    said of what no profile can know.
    """
    mesh = " x ".join(f"{axis} {size}" for axis, size in profile.mesh.items())
    classes = len(profile.programs)
    ranks = "rank" if profile.world_size == 1 else "ranks"
    steps = profile.made.get("decode steps")
    what = "iteration" if steps is None else f"a prefill and {steps} decode steps, request"
    lines = [
        f"{profile.name}: {profile.world_size} {ranks} ({mesh}),"
        f" {classes} {'class' if classes == 1 else 'classes'} of ranks"
        f", {what} {profile.made.get('iteration')}"
    ]
    for program in profile.programs:
        where = " ".join(f"{axis} {place}" for axis, place in program.at.items()) or "every rank"
        lines += [
            "",
            f"{where}: {len(program.steps)} operations",
            *_compute(profile, program),
            *_talk(program),
        ]
    lines += ["", *_compiled(profile.made.get("compiled"))]
    if plain is not None:
        lines.append(_effect(profile, plain))
    lines.extend(f"assumed: {text}" for text in profile.assumed)
    if steps is None:
        lines.append("left out: evaluations and checkpoints that other iterations hold")
    lines.extend(
        f"unknown operator: {times} x {name}, timed by its bytes" for name, times in profile.unknown.items()
    )
    lines.append(
        f"{cost.kernels} operators seen in {cost.seconds:.1f} s, at most {cost.peak_bytes / 1e9:.2f} GB;"
        f" written to {path}"
    )
    return "\n".join(lines) + "\n"


def _effect(profile: Profile, plain: Profile) -> str:
    """``routing zipf:1.1: an iteration takes ... 12.3 ms on h100-sxm ...; without: 10.1 ms (+21.8%)``."""
    said = ", ".join(f"{name} {profile.made[name]}" for name in UNKNOWNS if name in profile.made)
    this, other = alone_ps(profile), alone_ps(plain)
    what = "an iteration"
    if "tokens" in profile.made:
        what = f"a request of {profile.made['tokens']} tokens"
    without = f"of {plain.made['tokens']} tokens, " if "tokens" in plain.made else ""
    return (
        f"{said}: {what} takes a rank {format_time(this)} on {profile.gpu}, if communication is free;"
        f" without: {without}{format_time(other)} ({this / other - 1:+.1%})"
    )


def _compute(profile: Profile, program: ClassProgram) -> list[str]:
    phases: dict[str, list[int]] = {}
    for step in program.steps:
        row = phases.setdefault(step.phase, [0, 0, 0])
        for kernel, times in step.kernels:
            row[0] += times
            row[1] += profile.kernels[kernel][3] * times
            row[2] += profile.kernels[kernel][4] * times
    return [
        f"  {phase:<10} {kernels:>6} kernels  {flops / 1e12:>10.4g} TFLOP  {format_size(moved):>9} moved"
        for phase, (kernels, flops, moved) in phases.items()
    ]


def _compiled(made: dict[str, Any] | None) -> list[str]:
    """What `torch.compile` made of the first rank's iteration, and why its graphs were broken."""
    if not made:
        return []
    breaks: dict[str, int] = made.get("graph breaks", {})
    told = [f"{made['operators']} operators in {made['launches']} launches, {made['fused']} of them fused"]
    if made.get("captured"):
        told.append(f"{made['captured']} by CUDA graphs")
    told.append(f"{len(breaks)} graph {'break' if len(breaks) == 1 else 'breaks'}")
    graphs = made["graphs"]
    lines = [f"compiled: {graphs} {'graph' if graphs == 1 else 'graphs'} called, {', '.join(told)}"]
    return [*lines, *(f"graph break: {times} x {where}" for where, times in breaks.items())]


def _talk(program: ClassProgram) -> list[str]:
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for step in program.steps:
        if step.kind != "compute":
            key = (step.kind, _where(step))
            counts[key] += 1
            sizes[key] += step.size_bytes
    return [
        f"  {kind:<14} {counts[kind, where]:>6} x  over {where:<12} {format_size(sizes[kind, where]):>9}"
        for kind, where in sorted(counts)
    ]


def _where(step: ProfiledOperation) -> str:
    if step.peer is not None:
        return f"{step.peer[0]} {step.peer[1]:+d}"
    return " ".join(
        ",".join(str(p) for p in each) if isinstance(each, tuple) else each for each in step.group
    )
