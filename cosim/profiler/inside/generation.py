"""Requests: `generate` of transformers is a prefill and decode steps, an iteration where nothing trains.

A step begins where the model's inputs for it are prepared; choosing its token belongs to it. The number of
steps is that of ``max_new_tokens``, since nobody knows when a sentence ends. The cache is the script's own
(transformers' ``DynamicCache`` is copied at each step, as on a GPU).
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cosim.profiler.inside.recorder import DispatchRecorder

_MODULE = "transformers.generation.utils"


@dataclass(frozen=True)
class GenerationRequest:
    """Operations ``begin`` to ``end``, with so many decode steps after the prefill."""

    begin: int
    end: int
    decode_steps: int


def install(recorder: DispatchRecorder, ended: Callable[[GenerationRequest], None]) -> None:
    """Watch ``generate`` as soon as it is imported; ``ended(request)`` after each outermost call."""

    def watch(module: Any) -> None:
        mixin = module.GenerationMixin
        mixin.generate = _watched(mixin.generate, recorder, ended)

    if _MODULE in sys.modules:
        watch(sys.modules[_MODULE])
    else:
        sys.meta_path.insert(0, _WhenImported(watch))


def _watched(generate: Any, recorder: DispatchRecorder, ended: Callable[[GenerationRequest], None]) -> Any:
    @functools.wraps(generate)
    def watched(self: Any, *given: Any, **named: Any) -> Any:
        if recorder.stage:  # an assistant's, within another's
            return generate(self, *given, **named)
        begin, steps = len(recorder.operations), 0
        prepare = self.prepare_inputs_for_generation

        @functools.wraps(prepare)
        def prepared(*args: Any, **more: Any) -> Any:
            nonlocal steps
            steps += 1
            recorder.stage = "prefill" if steps == 1 else "decode"
            return prepare(*args, **more)

        self.prepare_inputs_for_generation = prepared
        recorder.stage = "prefill"
        try:
            out = generate(self, *given, **named)
        finally:
            recorder.stage = ""
            del self.prepare_inputs_for_generation
        ended(GenerationRequest(begin, len(recorder.operations), max(0, steps - 1)))
        return out

    return watched


class _WhenImported(importlib.abc.MetaPathFinder):
    """Tells of one module when it has been imported."""

    def __init__(self, then: Callable[[Any], None]) -> None:
        self.then = then

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        plain = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            plain(module)
            self.then(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
