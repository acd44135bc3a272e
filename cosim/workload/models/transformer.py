"""Kind ``transformer``: a dense transformer under data and tensor parallelism, as one program for all ranks.

Tensor parallelism as in Megatron-LM (Shoeybi et al., arXiv 1909.08053): per layer and micro-batch two
all-reduces of the hidden state forward and two backward, which the computation waits for. Data parallelism as
PyTorch's DDP (Li et al., VLDB 2020, doi:10.14778/3415478.3415530): gradients fill buckets in backward order;
a full bucket is all-reduced while backward goes on; the optimizer waits for all. Adam in mixed precision,
memory-bound.

The default efficiencies give the 1.42 s per iteration that Korthikanti et al. (arXiv 2205.05198, table 5)
measured for 22 G parameters on 8 A100s with full recomputation; another GPU or shape may need others.

Not modelled: the vocabulary-parallel all-reduces of embedding and loss, sequence parallelism, input loading,
kernel launches; communication takes no compute resources away.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt, model_validator

from cosim.registry import Named
from cosim.spec import SizeBytes, Spec
from cosim.workload.gpus import DTYPE_BYTES, DType, Gpu
from cosim.workload.models import layers
from cosim.workload.models.layers import Kernel, Shape
from cosim.workload.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    DeviceMesh,
    ImportReport,
    Operation,
    OpKind,
    Program,
    Workload,
)
from cosim.workload.roofline import compute_ps

TP_STREAM = "comm-tp"
"""Tensor-parallel all-reduces have a stream of their own, so that no gradient bucket holds them up."""

_ADAM_STATE_BYTES = 3 * (4 + 4)
"""Per parameter: fp32 master weight and two moments, read and written."""


class Transformer(Spec):
    """Dense transformer training, data x tensor parallel, computation timed by a roofline on a named GPU."""

    layers: PositiveInt = Field(description="transformer layers")
    hidden: PositiveInt = Field(description="hidden size h")
    heads: PositiveInt = Field(
        description="attention heads, a multiple of tensor_parallel; how many changes no cost"
    )
    ffn_multiplier: PositiveInt = Field(default=4, description="inner size of the MLP, in h")
    vocabulary: PositiveInt = Field(description="tokens in the vocabulary")
    sequence: PositiveInt = Field(description="sequence length s")
    micro_batch: PositiveInt = Field(default=1, description="sequences per rank and micro-batch")
    micro_batches: PositiveInt = Field(default=1, description="micro-batches per iteration")
    data_parallel: PositiveInt = Field(default=1, description="replicas: mesh axis dp")
    tensor_parallel: PositiveInt = Field(default=1, description="ranks that share a layer: mesh axis tp")
    dtype: DType = Field(default="bf16", description="of weights and activations")
    gradient_dtype: DType = Field(default="fp32", description="of gradients, as they are all-reduced")
    bucket: SizeBytes = Field(default=25 * 2**20, description="gradients all-reduced at once, at least")
    recompute: Literal["none", "full"] = Field(
        default="none", description="full: backward runs each layer forward again"
    )
    gpu: Annotated[Spec, Named("cosim.gpus")] = Field(description="GPU that the roofline is of")
    efficiency: float = Field(
        default=0.6, gt=0, le=1, description="fraction of peak FLOP/s that arithmetic-bound kernels reach"
    )
    memory_efficiency: float = Field(
        default=0.8, gt=0, le=1, description="fraction of peak memory rate that memory-bound kernels reach"
    )

    @model_validator(mode="after")
    def _divides(self) -> Transformer:
        if not isinstance(self.gpu, Gpu):
            raise ValueError(f"gpu should be a GPU, not a {type(self.gpu).__name__}")
        self.gpu.peak(self.dtype)
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} isn't a multiple of heads {self.heads}")
        for name in ("heads", "vocabulary"):
            value = getattr(self, name)
            if value % self.tensor_parallel:
                up = -(-value // self.tensor_parallel) * self.tensor_parallel
                raise ValueError(
                    f"{name} {value} isn't a multiple of tensor_parallel {self.tensor_parallel};"
                    f" {up} would be"
                )
        return self

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of gradients where there is nobody to exchange them with."""
        if self.data_parallel > 1:
            return []
        given = self.model_fields_set
        return [("bucket", "data_parallel is 1: no gradients are exchanged")] if "bucket" in given else []

    @property
    def shape(self) -> Shape:
        """Sizes of a layer."""
        return Shape(
            self.micro_batch,
            self.sequence,
            self.hidden,
            self.ffn_multiplier * self.hidden,
            self.vocabulary,
            self.tensor_parallel,
            DTYPE_BYTES[self.dtype],
        )

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        shape = self.shape
        per_layer = layers.attention_parameters(shape) + layers.mlp_parameters(shape)
        return self.layers * per_layer + layers.embedding_parameters(shape)

    def build(self, base: Path = Path()) -> Workload:  # noqa: ARG002 - every workload's signature
        """One program, whatever the world size."""
        assert isinstance(self.gpu, Gpu)
        builder = _Builder(self, self.gpu)
        for micro_batch in range(self.micro_batches):
            builder.micro_batch(micro_batch)
        builder.optimizer()
        mesh = DeviceMesh({"dp": self.data_parallel, "tp": self.tensor_parallel})
        gpu = self.gpu
        exchanged = f"in {builder.buckets} buckets" if builder.buckets else "not exchanged"
        report = ImportReport(
            invented=(
                f"computation by a roofline on {gpu.name} ({gpu.source}): {self.efficiency:.0%} of"
                f" {gpu.peak(self.dtype) / 1e12:g} TFLOP/s {self.dtype}, {self.memory_efficiency:.0%} of"
                f" {gpu.memory_rate / 8e9:g} GB/s",
                f"{self.parameters / 1e9:.4g} G parameters, {builder.gradient_bytes / 1e9:.4g} GB of"
                f" gradients per rank, {exchanged}",
            )
        )
        program = Program("every rank", tuple(builder.operations))
        return Workload("transformer", mesh, (program,), np.zeros(mesh.world_size, np.int32), report)


class _Builder:
    """Appends operations; ``last`` is what the next computation waits for."""

    def __init__(self, spec: Transformer, gpu: Gpu) -> None:
        self.spec = spec
        self.gpu = gpu
        self.shape = spec.shape
        self.operations: list[Operation] = []
        self.last: tuple[int, ...] = ()
        self.last_bucket: tuple[int, ...] = ()
        self.filled = 0
        self.gradient_bytes = 0
        self.buckets = 0

    def micro_batch(self, number: int) -> None:
        """Forward and backward of one micro-batch; gradients are exchanged after the last."""
        spec, shape = self.spec, self.shape
        exchange = number == spec.micro_batches - 1
        attention, mlp = layers.attention_forward(shape), layers.mlp_forward(shape)
        prefix = f"micro-batch {number} " if spec.micro_batches > 1 else ""
        self._compute(f"{prefix}embedding forward", layers.embedding_forward(shape), "forward")
        for layer in range(spec.layers):
            self._forward(f"{prefix}layer {layer}", attention, mlp, "forward")
        head = layers.head_forward(shape)
        self._compute(f"{prefix}head forward", head, "forward")
        self._compute(f"{prefix}head backward", layers.backward(head), "backward")
        for layer in reversed(range(spec.layers)):
            name = f"{prefix}layer {layer}"
            if spec.recompute == "full":
                self._forward(f"{name} recompute", attention, mlp, "recompute")
            for part, kernels, parameters in (
                ("mlp", mlp, layers.mlp_parameters(shape)),
                ("attention", attention, layers.attention_parameters(shape)),
            ):
                self._compute(f"{name} {part} backward", layers.backward(kernels), "backward")
                if exchange:
                    self._gradients(parameters)
                self._tensor_parallel(f"{name} {part} backward all-reduce", "backward")
        self._compute(
            f"{prefix}embedding backward", layers.backward(layers.embedding_forward(shape)), "backward"
        )
        if exchange:
            self._gradients(layers.embedding_parameters(shape), flush=True)

    def optimizer(self) -> None:
        """Adam on the rank's parameters; waits for every gradient."""
        each = _ADAM_STATE_BYTES + DTYPE_BYTES[self.spec.gradient_dtype] + DTYPE_BYTES[self.spec.dtype]
        parameters = self.spec.parameters // self.spec.tensor_parallel
        self.last += self.last_bucket
        self._compute("optimizer", [Kernel(0, parameters * each)], "optimizer")

    def _forward(self, name: str, attention: list[Kernel], mlp: list[Kernel], phase: str) -> None:
        for part, kernels in (("attention", attention), ("mlp", mlp)):
            self._compute(f"{name} {part} forward", kernels, phase)
            self._tensor_parallel(f"{name} {part} forward all-reduce", phase)

    def _compute(self, name: str, kernels: Sequence[Kernel], phase: str) -> None:
        spec = self.spec
        duration = sum(
            compute_ps(
                kernel.flops,
                kernel.bytes_moved,
                self.gpu,
                spec.dtype,
                efficiency=spec.efficiency,
                memory_efficiency=spec.memory_efficiency,
            )
            for kernel in kernels
        )
        operation = Operation(
            name,
            OpKind.COMPUTE,
            COMPUTE_STREAM,
            self.last,
            duration_ps=duration,
            flops=sum(kernel.flops for kernel in kernels),
            bytes_moved=sum(kernel.bytes_moved for kernel in kernels),
            phase=phase,
        )
        self.last = (self._append(operation),)

    def _tensor_parallel(self, name: str, phase: str) -> None:
        if self.spec.tensor_parallel == 1:
            return
        size = self.shape.activation_bytes
        operation = self._all_reduce(name, TP_STREAM, self.last, "tp", size, phase)
        self.last = (self._append(operation),)

    def _gradients(self, parameters: int, *, flush: bool = False) -> None:
        """Add gradients to the bucket; send it when it is full, and at the end."""
        size = parameters // self.spec.tensor_parallel * DTYPE_BYTES[self.spec.gradient_dtype]
        self.filled += size
        self.gradient_bytes += size
        if self.spec.data_parallel == 1 or (self.filled < self.spec.bucket and not flush):
            return
        deps = tuple(sorted({*self.last, *self.last_bucket}))
        name = f"gradient bucket {self.buckets}"
        operation = self._all_reduce(name, COMM_STREAM, deps, "dp", self.filled, "backward")
        self.last_bucket = (self._append(operation),)
        self.buckets += 1
        self.filled = 0

    def _all_reduce(
        self, name: str, stream: str, deps: tuple[int, ...], axis: str, size: int, phase: str
    ) -> Operation:
        return Operation(
            name,
            OpKind.COLLECTIVE,
            stream,
            deps,
            collective="all_reduce",
            axes=(axis,),
            size_bytes=size,
            phase=phase,
        )

    def _append(self, operation: Operation) -> int:
        self.operations.append(operation)
        return len(self.operations) - 1
