"""Profiles of the scripts beside, each made once a test session."""

from __future__ import annotations

import importlib.util
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from cosim.profiler.file import ClassProgram, Profile
from cosim.profiler.inside.shim import compiler
from cosim.profiler.launch import ProfileRequest, profile
from cosim.profiler.lower import merged

SCRIPTS = Path(__file__).parent / "scripts"

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None or compiler() is None,
    reason="needs PyTorch (pip install '.[profile]') and a C++ compiler, without which cuda is cpu",
)
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None or importlib.util.find_spec("accelerate") is None,
    reason="pip install transformers accelerate",
)


@cache
def profiled(script: str, *arguments: str, world_size: int = 8, imbalance: float = 1.0) -> Profile:
    """Each kernel a step of its own."""
    path = str(SCRIPTS / script)
    made, _ = profile(ProfileRequest(path, arguments, world_size=world_size, imbalance=imbalance))
    return made


def operations(made: Profile, place: int = 0) -> ClassProgram:
    """A class's steps as they are written."""
    program = made.programs[place]
    return ClassProgram(program.at, merged(program.steps))


def flops(made: Profile, phase: str, place: int = 0) -> int:
    """As PyTorch counts them, which takes a causal mask for none."""
    return sum(
        made.kernels[k][3] * times
        for step in made.programs[place].steps
        if step.phase == phase
        for k, times in step.kernels
    )


def sizes(made: Profile, kind: str, axis: str, place: int = 0) -> Counter[int]:
    """How often each number of bytes is exchanged."""
    return Counter(
        step.size_bytes
        for step in made.programs[place].steps
        if step.kind == kind and (step.group == (axis,) or (step.peer is not None and step.peer[0] == axis))
    )


def before(program: ClassProgram, number: int) -> set[int]:
    """Everything that an operation runs after."""
    found: set[int] = set()
    waiting = [number]
    while waiting:
        for dep in program.steps[waiting.pop()].deps:
            if dep not in found:
                found.add(dep)
                waiting.append(dep)
    return found
