"""Bytes of a GPU that trains in eager PyTorch, at the moments of an iteration at which it may be fullest.

Backward begins with all that the layers kept; the loss's has gradients of all logits at once, beside their
log-softmax. Gradients of weights are made as activations go: none are there before (``zero_grad`` sets them
to None), unless an earlier micro-batch left them. Metrics, after backward, have logits and their log-softmax
in fp32. AdamW by ``foreach`` has the roots of all second moments at a time. FSDP has one layer's parameters
whole beside those that are being gathered, and a layer's gradients while they are scattered; DDP's buckets
are a second copy of all gradients. A script keeps the logits that its model gave back until the next come.

Not modelled: see :mod:`cosim.models.catalogue.memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cosim.models.catalogue.cut import Parallel
from cosim.models.catalogue.memory import Memory, in_flight
from cosim.models.parts import Layer
from cosim.models.pytorch.training import EagerTraining
from cosim.models.schedule import where

LOSS, BACKWARD, METRICS, STEP = (
    "the loss's backward",
    "the blocks' backward",
    "metrics",
    "the optimizer's step",
)


def eager_memory(
    stages: Sequence[Sequence[Sequence[Layer]]],
    training: EagerTraining,
    parallel: Parallel,
    outputs: int,
    metric: int = 0,
) -> Memory:
    """The memory of the fullest rank.

    ``outputs``: bytes of logits that the script keeps, ``metric``: of what metrics make of them.
    """
    deep = parallel.pp
    last = where(parallel.schedule, deep * parallel.virtual_stages - 1, deep)[0]
    found = []
    for stage, chunks in enumerate(stages):
        flying = in_flight(parallel.schedule, stage, deep, training.micro_batches, parallel.virtual_stages)
        moments = _moments(chunks, training, parallel, flying, outputs if stage == last else 0)
        if metric and stage == last:
            moments.append(
                replace(
                    moments[-1],
                    optimizer=2 * moments[-1].weights,
                    activations=outputs + metric,
                    moment=METRICS,
                )
            )
        found.append(max(moments, key=lambda one: one.total))
        others = tuple((one.moment, one.total) for one in moments if one is not found[-1])
        found[-1] = replace(found[-1], other_moments=others)
    return max(found, key=lambda memory: memory.total)


def _moments(
    chunks: Sequence[Sequence[Layer]],
    training: EagerTraining,
    parallel: Parallel,
    flying: float,
    outputs: int,
) -> list[Memory]:
    """The moments of a stage: in the backward of its last layer, of another, in the optimizer's step."""
    layers, kept = [layer for chunk in chunks for layer in chunk], training.kept_width
    own = sum(layer.num_parameters for layer in layers) * kept
    gathered = scattered = buckets = 0
    shards, apart = parallel.size(parallel.shard_axes), parallel.size(parallel.expert_shard_axes)
    if shards > 1:
        whole = sorted(
            ((layer.num_parameters - layer.experts) * shards + layer.experts * apart for layer in layers),
            reverse=True,
        )
        gathered = sum(whole[:2] if parallel.reshard else whole) * training.parameter_width
        scattered = whole[0] * training.gradient_width
    elif parallel.size(parallel.gradient_axes) > 1:
        buckets = own
    step = own if training.optimizer == "foreach" else 0
    states = Memory(weights=own, gradients=own + buckets, optimizer=2 * own)
    below = sum(layer.keeps for layer in layers)
    earlier = int((flying - 1) * below) + outputs
    made, found = 0, []
    for layer in reversed(layers):
        below -= layer.keeps
        there = own if training.micro_batches > 1 else made
        made += layer.num_parameters * kept
        gradients = there + buckets + (scattered if layer is not layers[-1] else 0)
        found.append(
            replace(
                states,
                weights=own + gathered,
                gradients=gradients,
                activations=earlier + below + layer.most,
                moment=(LOSS if outputs else BACKWARD) if layer is layers[-1] else BACKWARD,
            )
        )
    fullest = max(found[1:], key=lambda one: one.total, default=found[0])
    update = replace(states, optimizer=2 * own + step, activations=outputs, moment=STEP)
    return [*([found[0]] if outputs else []), fullest, update]
