"""vLLM's `LLM`: its ranks are the job's; `generate` is a request, of as many steps as its scheduler makes.

What a script leaves open is chosen so that all of it happens in the rank's process, where it is seen: the
engine and the ranks have no processes of their own, no weights are read, the model runner is the one whose
state is the host's, nothing is compiled. A step that is scheduled for a sequence without a token yet is of
the prefill (of long prompts, or many, there are several), any other decodes. When an answer ends, the
script's own parameters say. Axes have the names that vLLM gives its groups; what ranks would tell each
other through shared memory goes by process groups, as in vLLM where there is none.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from cosim.profiler.inside.generation import GenerationRequest, when_imported
from cosim.profiler.inside.recorder import DispatchRecorder

_AXES = {"tp": "tp", "pp": "pp", "dp": "dp", "pcp": "cp"}
"""What vLLM calls its groups, and the axes that they are; others are made of these."""
_SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
}
_CHOICES = {
    "distributed_executor_backend": "external_launcher",
    "enforce_eager": True,
    "load_format": "dummy",
}
"""Choices of the environment and of `LLM`, where the script says nothing else."""


def install(
    recorder: DispatchRecorder, ended: Callable[[GenerationRequest], None], assume: Callable[[str], None]
) -> None:
    """Watch vLLM as soon as it is imported; ``ended(request)`` after each call of ``generate``,
    ``assume(text)`` what was chosen for the script.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    steps = _EngineSteps(recorder)

    def watch_calls(module: Any) -> None:
        module.LLM.__init__ = _with_choices(module.LLM.__init__, assume)
        module.LLM.generate = _watched_calls(module.LLM.generate, steps, ended)

    def watch_steps(module: Any) -> None:
        plain = module.Scheduler.schedule

        @functools.wraps(plain)
        def schedule(scheduler: Any, *given: Any, **named: Any) -> Any:
            step = plain(scheduler, *given, **named)
            steps.scheduled(step)
            return step

        module.Scheduler.schedule = schedule

    def watch_groups(module: Any) -> None:
        plain = module.init_model_parallel_group

        @functools.wraps(plain)
        def init(group_ranks: list[list[int]], *given: Any, **named: Any) -> Any:
            _name(recorder.groups.named, named.get("group_name"), group_ranks)
            return plain(group_ranks, *given, **named)

        module.init_model_parallel_group = init

    def refuse_workers(module: Any) -> None:
        module.MultiprocExecutor._init_executor = _refuse_workers

    def open_queues(module: Any) -> None:
        module.MessageQueue.create_from_process_group = staticmethod(lambda *_, **__: None)

    when_imported("vllm.entrypoints.llm", watch_calls)
    when_imported("vllm.v1.core.sched.scheduler", watch_steps)
    when_imported("vllm.distributed.parallel_state", watch_groups)
    when_imported("vllm.v1.executor.multiproc_executor", refuse_workers)
    when_imported("vllm.distributed.device_communicators.shm_broadcast", open_queues)


def _with_choices(plain: Any, assume: Callable[[str], None]) -> Any:
    @functools.wraps(plain)
    def init(llm: Any, *given: Any, **named: Any) -> None:
        if not named.get("enforce_eager", False):
            assume(
                "vLLM runs eagerly: what it would compile or capture in CUDA graphs is launched one by one"
            )
        plain(llm, *given, **{**_CHOICES, **named})

    return init


def _watched_calls(plain: Any, steps: _EngineSteps, ended: Callable[[GenerationRequest], None]) -> Any:
    @functools.wraps(plain)
    def generate(llm: Any, *given: Any, **named: Any) -> Any:
        begin = steps.begin()
        try:
            answers = plain(llm, *given, **named)
        finally:
            steps.end()
        ended(steps.request(begin, answers))
        return answers

    return generate


def _refuse_workers(_: Any) -> None:
    raise RuntimeError(
        "vLLM would start its own ranks, which aren't seen: LLM(..., distributed_executor_backend="
        "'external_launcher') runs in those that --world-size makes, as under torchrun"
    )


def _name(known: list[dict[str, Any]], name: str | None, groups: list[list[int]]) -> None:
    """Note which axis this rank's group is."""
    own = next((sorted(ranks) for ranks in groups if dist.get_rank() in ranks), [])
    if name in _AXES and len(own) > 1:
        known.append({"names": [_AXES[name]], "shape": [len(own)], "ranks": own})


class _EngineSteps:
    """What the engine has done of a request."""

    def __init__(self, recorder: DispatchRecorder) -> None:
        self.recorder = recorder
        self.running = False
        self.decode_steps = 0

    def begin(self) -> int:
        """A call begins; the operation that comes first in it."""
        self.running, self.decode_steps = True, 0
        return len(self.recorder.operations)

    def end(self) -> None:
        """It has ended, in one way or another."""
        self.running, self.recorder.stage = False, ""

    def scheduled(self, step: Any) -> None:
        """What is carried out next."""
        if not self.running or not step.total_num_scheduled_tokens:
            return
        running = step.scheduled_cached_reqs
        decodes = not step.scheduled_new_reqs and all(running.num_output_tokens)
        self.recorder.stage = "decode" if decodes else "prefill"
        self.decode_steps += decodes

    def request(self, begin: int, answers: list[Any]) -> GenerationRequest:
        """What the call was, once it has ended."""
        lengths = [len(one.token_ids) for answer in answers for one in answer.outputs]
        end = len(self.recorder.operations)
        return GenerationRequest(begin, end, self.decode_steps, len(lengths), sum(lengths), max(lengths))
