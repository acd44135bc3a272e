"""Requests: `generate` of transformers is a prefill and decode steps, an iteration where nothing trains.

A step begins where the model's inputs for it are prepared; choosing its token belongs to it, and drafting
what the next one verifies. When a sentence ends and which drafts hold, :mod:`.answers` is told. The cache is
the script's own (transformers' ``DynamicCache`` is copied at each step, as on a GPU).
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cosim.profiler.inside.answers import ChosenTokens
from cosim.profiler.inside.recorder import DispatchRecorder

_MODULE = "transformers.generation.utils"


@dataclass(frozen=True)
class GenerationRequest:
    """Operations ``begin`` to ``end``: a prefill and ``decode_steps``, which gave ``sequences`` answers of
    ``tokens`` in all, the longest of ``longest``.
    """

    begin: int
    end: int
    decode_steps: int
    sequences: int
    tokens: int
    longest: int

    def made(self) -> dict[str, int]:
        """As the profile's file says it."""
        return {
            "decode steps": self.decode_steps,
            "sequences": self.sequences,
            "tokens": self.tokens,
            "longest": self.longest,
        }


def install(
    recorder: DispatchRecorder, tokens: ChosenTokens, ended: Callable[[GenerationRequest], None]
) -> None:
    """Watch ``generate`` as soon as it is imported; ``ended(request)`` after each outermost call."""

    def watch(module: Any) -> None:
        mixin = module.GenerationMixin
        plain = mixin.generate

        @functools.wraps(plain)
        def generate(model: Any, *given: Any, **named: Any) -> Any:
            if recorder.stage:  # an assistant's, within another's
                return plain(model, *given, **named)
            call = _Answering(model, recorder, tokens)
            out = call.carry_out(plain, given, named)
            ended(call.request())
            return out

        mixin.generate = generate

    when_imported(_MODULE, watch)


def when_imported(module: str, then: Callable[[Any], None]) -> None:
    """Have ``then(module)`` as soon as it is imported."""
    if module in sys.modules:
        then(sys.modules[module])
    else:
        sys.meta_path.insert(0, _WhenImported(module, then))


class _Answering:
    """One call of ``generate``: its steps are counted, its sequences ended, its drafts announced."""

    def __init__(self, model: Any, recorder: DispatchRecorder, tokens: ChosenTokens) -> None:
        self.model, self.recorder, self.tokens = model, recorder, tokens
        self.begin, self.steps = len(recorder.operations), 0
        self.rows = self.prompt = self.generated = 0

    def carry_out(self, generate: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """What ``generate`` gives."""
        watched = {
            "prepare_inputs_for_generation": self._prepared,
            "_get_candidate_generator": self._drafting,
            "_prepare_generated_length": self._limited,
        }
        for name, watch in watched.items():
            setattr(self.model, name, watch(getattr(self.model, name)))
        self.recorder.stage = "prefill"
        try:
            with self.tokens.answering():
                out = generate(self.model, *given, **named)
        finally:
            self.recorder.stage = ""
            for name in watched:
                delattr(self.model, name)
        sequences = out if isinstance(out, torch.Tensor) else out.sequences
        self.rows, self.generated = sequences.shape[0], sequences.shape[1] - self.prompt
        return out

    def request(self) -> GenerationRequest:
        """What it was, once it has ended."""
        lengths = self.tokens.lengths or [self.generated] * self.rows
        return GenerationRequest(
            self.begin,
            len(self.recorder.operations),
            max(0, self.steps - 1),
            self.rows,
            sum(min(length, self.generated) for length in lengths),
            self.generated,
        )

    def _prepared(self, prepare: Any) -> Any:
        @functools.wraps(prepare)
        def prepared(input_ids: Any, *args: Any, **more: Any) -> Any:
            self.steps += 1
            self.recorder.stage = "prefill" if self.steps == 1 else "decode"
            self.tokens.step_begins(input_ids.shape[1] - self.prompt)
            return prepare(input_ids, *args, **more)

        return prepared

    def _limited(self, limit: Any) -> Any:
        """How long the prompt is, and an answer may be."""

        @functools.wraps(limit)
        def limited(*args: Any, **more: Any) -> Any:
            config = limit(*args, **more)
            self.prompt = more["input_ids_length"]
            self.tokens.most = config.max_length - self.prompt
            return config

        return limited

    def _drafting(self, make: Any) -> Any:
        """Tell how many tokens a draft has, before the model sees it."""

        @functools.wraps(make)
        def made(*args: Any, **more: Any) -> Any:
            generator = make(*args, **more)
            draft = generator.get_candidates

            @functools.wraps(draft)
            def drafted(input_ids: Any, *rest: Any, **named: Any) -> Any:
                found = draft(input_ids, *rest, **named)
                self.tokens.drafted(found[0].shape[1] - input_ids.shape[1])
                return found

            generator.get_candidates = drafted
            return generator

        return made


class _WhenImported(importlib.abc.MetaPathFinder):
    """Tells of one module when it has been imported."""

    def __init__(self, module: str, then: Callable[[Any], None]) -> None:
        self.module, self.then = module, then

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if name != self.module:
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
