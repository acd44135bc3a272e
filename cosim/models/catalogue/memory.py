"""Bytes on each GPU: weights, gradients, optimizer, activations, key-value cache; and what would fit.

Adam in mixed precision: 12 bytes a parameter for master weight and two moments (Rajbhandari et al., arXiv
1910.02054, section 3.1), sharded with the optimizer or with everything. Activations are Korthikanti et
al.'s, "Reducing Activation Recomputation in Large Transformer Models", arXiv 2205.05198, tensor by tensor:
for GPT, equations 1 to 6; the same tensors of grouped-query attention, gated MLPs and experts. A fused
attention keeps no scores. A stage keeps as many micro-batches as are under way when it is fullest (1F1B:
stages after it and itself; section 4.2.3), of which the last stage also keeps logits in fp32. In serving a
Mamba-2 layer keeps a state for each sequence, however long it is.

Not modelled: fragmentation, buffers of NCCL and cuBLAS, the CUDA context: ``memory_reserve`` stands for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from cosim.gpu.kernels import NARROW_BYTES
from cosim.models.catalogue.architecture import ATTENTION, EXPERTS, MAMBA
from cosim.models.catalogue.blocks import Blocks
from cosim.models.parts import Layer
from cosim.models.schedule import (
    IN_ROUNDS,
    PARTED,
    ScheduleName,
    even_rounds,
    part_of,
    passes,
    where,
)
from cosim.units import format_memory

_FP32 = 4
_MASK = 1
_OPERAND_BITS = {"fp8": 8, "mxfp8": 8, "nvfp4": 4}


def adam_bytes(parameter_width: int) -> int:
    """Bytes of a parameter: two moments in fp32, and a master weight unless the weight itself is in fp32."""
    return 8 if parameter_width >= _FP32 else 12


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the fullest GPU; ``remote``: what it has elsewhere, beside its own.

    ``moment``: when it is fullest, where that was asked; ``other_moments``: its bytes at others.
    """

    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    cache: int = 0
    remote: int = 0
    moment: str = ""
    other_moments: tuple[tuple[str, int], ...] = ()

    @property
    def total(self) -> int:
        """All of it on the GPU."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.cache

    def __str__(self) -> str:
        parts = {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimizer": self.optimizer,
            "activations": self.activations,
            "key-value cache": self.cache,
        }
        shown = ", ".join(f"{name} {format_memory(size)}" for name, size in parts.items() if size)
        beside = f"; {format_memory(self.remote)} in remote memory" if self.remote else ""
        when = f" in {self.moment}" if self.moment else ""
        others = "".join(f"; in {name} {format_memory(size)}" for name, size in self.other_moments)
        return f"{format_memory(self.total)}{when}: {shown}{beside}{others}"


@dataclass(frozen=True, slots=True)
class Kept:
    """How training keeps things: bytes of a parameter and of a gradient, and whether ranks share states.

    ``gathered_width``: of a parameter that FSDP has gathered; ``state``: the optimizer's, of each.
    """

    parameter_width: int
    gradient_width: int
    sharded_optimizer: bool
    micro_batches: int
    gathered_width: int
    state: int


def activation_bytes(blocks: Blocks, number: int, kinds: str | None = None) -> int:
    """What a layer keeps of a micro-batch until its backward; ``kinds`` where they aren't its number's."""
    checkpointed = blocks.checkpointed_bytes(number)
    if checkpointed is not None:
        return checkpointed
    return sum(_activations_of(blocks, kind) for kind in kinds or blocks.model.kinds(number))


def _activations_of(blocks: Blocks, kind: str) -> int:
    """Activations of one kind: input and output of its norm, masks, and what is between."""
    m, cut, tp = blocks.model, blocks.cut, blocks.tp
    w, tokens, own = cut.width, cut.tokens, cut.own_tokens
    mask = _MASK * m.hidden if m.dropout else 0
    outer = own * ((1 if cut.runs_again("norm") else 2) * m.hidden * w + mask)
    if kind == MAMBA and m.mamba is not None:
        from cosim.models.catalogue.mamba_layer import MambaLayer

        return outer + MambaLayer(m.mamba, cut).activation_bytes()
    if kind == ATTENTION:
        return outer + _attention_activations(blocks)
    wide = blocks.mlp_tensors - cut.runs_again("activation")
    dense = 0 if cut.runs_again("mlp") else wide
    if kind != EXPERTS or m.experts is None:
        return outer + tokens * dense * m.ffn * w // tp
    if cut.runs_again("experts"):
        return outer
    e = m.experts
    seen = e.width(m.hidden)
    moved = own * e.top_k * cut.parallel.imbalance
    expert = moved * 2 * seen * w + tokens * e.top_k * cut.parallel.imbalance * wide * e.ffn * w // tp
    projected = 2 * own * (e.latent or 0) * w
    return outer + int(expert) + projected + tokens * dense * e.shared_inner * w // tp


def _attention_activations(blocks: Blocks) -> int:
    m, cut, tp = blocks.model, blocks.cut, blocks.tp
    w, tokens, extra = cut.width, cut.tokens, 0
    if m.latent is None:
        inner = (2 * m.heads + 2 * max(m.kv, tp)) * m.head * w
    else:
        a = m.latent
        kept = a.value if cut.runs_again("latent") else 2 * (a.nope + a.rope) + 2 * a.value
        inner = m.heads * kept * w
        extra = tokens * 2 * (a.query_rank + a.key_value_rank) * w
    scores = 0
    if cut.attention == "unfused" and not cut.runs_again("attention"):
        scores = m.heads * cut.keys * (2 * w + (_MASK if m.dropout else 0))  # softmax, dropped, mask
    return extra + tokens * (inner + scores) // tp


def saved_bytes(blocks: Blocks) -> int:
    """What Transformer Engine's dense layer keeps of a micro-batch until its backward; 0: it isn't one.

    Inputs of both norms and what they make, queries, keys, values, attention's result, the MLP's halves and
    their product. Operands of products are in the recipe's type, of which attention's result is then a second
    copy.
    """
    m, cut = blocks.model, blocks.cut
    if m.pattern is not None or m.experts is not None or m.latent is not None or m.ahead:
        return 0
    own, tokens = cut.own_tokens, cut.tokens // blocks.tp
    width = 8 * cut.width
    operand = width if cut.recipe is None else _OPERAND_BITS[cut.recipe]
    attention = (2 * m.heads + 2 * max(m.kv, blocks.tp)) * m.head * width
    if operand != width:
        attention += m.heads * m.head * operand
    halves = (blocks.mlp_tensors - 1) * m.ffn * width
    bits = own * 2 * m.hidden * (width + operand) + tokens * (attention + halves + m.ffn * operand)
    return bits // 8


def in_flight(schedule: ScheduleName, stage: int, stages: int, micro_batches: int, chunks: int) -> float:
    """Micro-batches whose activations a stage keeps at most, counted in passes through all its layers."""
    if schedule in ("gpipe", "looped_bfs"):
        return micro_batches
    if schedule == "1f1b":
        return min(stages - stage, micro_batches)
    if schedule in PARTED:
        return _most_kept(schedule, stage, stages, micro_batches, chunks) / chunks
    ahead = (stages - stage - 1) * 2 + (chunks - 1) * even_rounds(micro_batches, stages) + 1
    return min(ahead, micro_batches * chunks) / chunks


def _most_kept(schedule: ScheduleName, stage: int, stages: int, micro_batches: int, chunks: int) -> int:
    """Passes through a chunk whose activations there are at once: until weights' gradients are made."""
    together = even_rounds(micro_batches, stages) if schedule in IN_ROUNDS else None
    order = passes(schedule, stage, stages, micro_batches, chunks, together=together)
    return max(accumulate(one.forward - one.ends for one in order))


def training_memory(blocks: Blocks, stages: Sequence[Sequence[Sequence[Layer]]], kept: Kept) -> Memory:
    """The memory of the fullest rank."""
    parallel = blocks.cut.parallel
    deep, chunks = parallel.pp, parallel.virtual_stages
    counts = parallel.layers_of_parts(blocks.model.layers)
    m, cut = blocks.model, blocks.cut
    found = []
    for stage, layers in enumerate(stages):
        mine = [layer for chunk in layers for layer in chunk]
        own = sum(layer.num_parameters for layer in mine)
        numbers = [
            k
            for c in range(chunks)
            for part in [part_of(parallel.schedule, stage, c, deep)]
            for k in range(sum(counts[:part]), sum(counts[: part + 1]))
        ]
        flying = in_flight(parallel.schedule, stage, deep, kept.micro_batches, chunks)
        each = sum(activation_bytes(blocks, number) for number in numbers)
        activations = int(each * flying)
        # While a layer is run again, it keeps everything.
        if any(blocks.checkpointed_bytes(number) is not None for number in numbers):
            activations += max(activation_bytes(_fully(blocks), number) for number in numbers)
        hidden = cut.own_tokens * m.hidden
        if stage == 0:
            activations += int(hidden * (_MASK if m.dropout else 0) * flying)
        if where(parallel.schedule, deep * chunks - 1, deep)[0] == stage:
            activations += (1 + m.ahead) * (2 * hidden * cut.width + blocks.logits_bytes)
            activations += int(m.ahead * activation_bytes(blocks, m.layers - 1, m.ahead_kinds) * flying)
        weights, gradients = own * kept.parameter_width, own * kept.gradient_width
        shards = parallel.size(parallel.shard_axes)
        if shards > 1:
            apart = parallel.size(parallel.expert_shard_axes)
            whole = sorted(
                ((layer.num_parameters - layer.experts) * shards + layer.experts * apart for layer in mine),
                reverse=True,
            )
            if parallel.reshard:
                weights += sum(whole[:2]) * kept.gathered_width
                gradients += whole[0] * kept.gradient_width if whole else 0
            else:
                weights = sum(whole) * kept.gathered_width
        optimizer = 0
        for layer in mine:
            for axes, count in layer.parameters.items():
                optimizer += count * kept.state // (parallel.size(axes) if kept.sharded_optimizer else 1)
        found.append(Memory(weights, gradients, optimizer, activations))
    return max(found, key=lambda memory: memory.total)


def _fully(blocks: Blocks) -> Blocks:
    """The same, keeping everything."""
    return Blocks(blocks.model, replace(blocks.cut, recompute="none"))


def inference_memory(
    blocks: Blocks, stages: Sequence[Sequence[Sequence[Layer]]], micro_batches: int
) -> Memory:
    """Weights, the cache of all sequences, and what two parts of a layer hand each other."""
    m, cut, tp = blocks.model, blocks.cut, blocks.tp
    counts = cut.parallel.layers_of_parts(m.layers)
    kept = m.kept_per_token() if m.latent is not None else 2 * max(m.kv // tp, 1) * m.head
    context = cut.keys if cut.decode else cut.sequence
    found, begin = [], 0
    for layers, count in zip(stages, counts, strict=True):
        own = sum(layer.num_parameters for chunk in layers for layer in chunk)
        kinds = "".join(m.kinds(number) for number in range(begin, begin + count))
        begin += count
        cache = kinds.count(ATTENTION) * kept * cut.width * cut.batch * micro_batches * context
        if m.mamba is not None:
            states = kinds.count(MAMBA) * m.mamba.kept_bytes(cut.width) // tp
            cache += states * cut.batch * micro_batches
        width = max(2 * m.hidden, 3 * m.ffn // tp)
        weights = own * cut.width
        if cut.narrow is not None:  # but the ends
            ends = blocks.embedding().num_parameters * (begin == count)
            ends += blocks.next_token().num_parameters * (begin == m.layers)
            weights = ends * cut.width + int((own - ends) * NARROW_BYTES[cut.narrow])
        found.append(Memory(weights=weights, cache=cache, activations=cut.tokens * width * cut.width))
    return max(found, key=lambda memory: memory.total)
