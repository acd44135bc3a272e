"""Pipeline stages one by one: what stages tell each other about shapes goes through files.

A stage's rank runs after the ranks before it in the group, so that its inputs' shapes are known. Where a
later rank holds the stage before (interleaved schedules) the shape is guessed to be that of another stage's
output; the guess is kept and compared once that rank has run.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.pipelining import _backward, _utils, schedules, stage

from cosim.profiler.inside.distributed import Pending, ProcessGroups, everywhere
from cosim.profiler.inside.shared_folder import SharedFolder


def install(
    folder: SharedFolder, groups: ProcessGroups, guesses: dict[str, str], stages: dict[str, str]
) -> None:
    """Stages talk through ``folder``; ``guesses``: what was taken for a file that wasn't there; ``stages``:
    what was told.
    """
    _tell_shapes(folder, guesses, stages)
    _backward.get_param_groups = _in_order(_backward.get_param_groups)
    for schedule in (schedules.PipelineScheduleSingle, schedules.PipelineScheduleMulti):
        schedule.step = _taking_microbatches(schedule.step)  # type: ignore[method-assign]
    everywhere(dist.batch_isend_irecv, _batched(groups))


def _tell_shapes(folder: SharedFolder, guesses: dict[str, str], stages: dict[str, str]) -> None:
    """What stages tell each other before the first micro-batch."""

    def warm_up(self: Any, stages: list[Any], has_backward: bool, p2p_done: bool) -> None:
        for each in stages:
            needs = _utils.InferenceMode.needs_dynamic(each._user_meta, has_backward)
            each._inference_mode = _utils.InferenceMode.DYNAMIC if needs else _utils.InferenceMode.STATIC

    outputs: list[Any] = []

    def send_meta(self: Any, meta: Any, dst_stage: int) -> None:
        if dst_stage > self.stage_index:
            outputs.append(meta)
            stages[f"{self.stage_index}-{dst_stage}"] = shape_text(meta)
        folder.put(f"{self.stage_index}-{dst_stage}", meta)

    def receive_meta(self: Any, src_stage: int) -> Any:
        # Gradients come back in the shapes of what was sent: no need to wait for a rank that runs later.
        if src_stage > self.stage_index:
            return stage._StageBackwardMeta(
                backward_metas=_utils._derive_grad_metas(self._stage_meta.outputs)
            )
        name = f"{src_stage}-{self.stage_index}"
        found = folder.get(name, dist.get_global_rank(self.group, self.stage_index_to_group_rank[src_stage]))
        if found is not None:
            return found
        if not outputs:
            raise RuntimeError(
                f"stage {self.stage_index} needs the shapes of stage {src_stage}, not profiled yet"
            )
        guesses[name] = shape_text(outputs[0])
        return outputs[0]

    schedules._PipelineSchedule._warmup_p2p = warm_up  # type: ignore[method-assign]
    stage.PipelineStage._send_meta = send_meta  # type: ignore[method-assign]
    stage.PipelineStage._recv_meta = receive_meta  # type: ignore[method-assign]


def _batched(groups: ProcessGroups) -> Any:
    """``batch_isend_irecv`` whose messages are waited for together."""

    def batch_isend_irecv(p2p_op_list: list[Any]) -> list[Any]:
        groups.batch = []
        for op in p2p_op_list:
            key = "group_dst" if op.op is c10d.isend else "group_src"
            op.op(op.tensor, group=op.group, tag=op.tag, **{key: op.group_peer})
        numbers, groups.batch = groups.batch, None
        work = Pending(groups.recorder, numbers, [op.tensor for op in p2p_op_list])
        groups.kept.append(work)
        return [work]

    return batch_isend_irecv


def _in_order(groups_of: Any) -> Any:
    """Zero-bubble schedules keep graph nodes in sets, in the order of addresses: here, as they were made."""

    def param_groups(inputs: Any, params: Any, *rest: Any) -> Any:
        place = {param: number for number, param in enumerate(params)}
        found = groups_of(inputs, params, *rest)
        for group in found:
            group["params"] = sorted(group["params"], key=place.__getitem__)
            group["intermediates"] = sorted(group["intermediates"], key=lambda node: node._sequence_nr())
        return found

    return param_groups


def _taking_microbatches(step: Any) -> Any:
    """``step`` that takes micro-batches already cut, as the torch after 2.13 does (for torchtitan 0.3)."""

    @functools.wraps(step)
    def call(
        self: Any,
        *args: Any,
        arg_mbs: Any = None,
        kwarg_mbs: Any = None,
        target_mbs: Any = None,
        **given: Any,
    ) -> Any:
        if arg_mbs is None and kwarg_mbs is None and target_mbs is None:
            return step(self, *args, **given)
        through = self._step_microbatches
        # `step` cuts the batch by this method, and hands the micro-batches on by the other.
        self._split_inputs = lambda *_: (arg_mbs, kwarg_mbs)
        self._step_microbatches = lambda a, k, _, *rest, **more: through(a, k, target_mbs, *rest, **more)
        try:
            return step(self, **given)
        finally:
            del self._split_inputs, self._step_microbatches

    return call


def shape_text(meta: Any) -> str:
    """Shapes and types of a stage's outputs, to compare."""
    return json.dumps([[list(m.shape), str(m.dtype)] for m in meta.forward_metas])
