"""Kind ``transformer``: a dense transformer under Megatron-LM's data, tensor and pipeline parallelism.

Ranks are numbered as Megatron-LM and DeepSpeed do, tensor-parallel peers adjacent, then data-parallel, then
pipeline stages: mesh axes ``pp``, ``dp``, ``tp``. What layers do is in ``layers``, schedules in ``schedule``,
what happens in an iteration in ``training``; computation is timed by the GPU's compute model
(``cosim.gpu``).

Gradients fill buckets in backward order; a full bucket is all-reduced while backward goes on, as PyTorch's
DDP does (Li et al., VLDB 2020, doi:10.14778/3415478.3415530); or all together at the end, as DeepSpeed's
pipeline engine does. Adam in mixed precision, memory-bound.

Not modelled: input loading, evaluation, checkpoints; layers that don't divide evenly over the stages.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt, model_validator

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.gpu.contract import GpuSpec
from cosim.gpu.gpus import DTYPE_BYTES, DType, Gpu
from cosim.gpu.timer import GpuTimer
from cosim.models.build import build_training
from cosim.models.layers import (
    TP,
    Attention,
    Recompute,
    Shape,
    attention_parameters,
    embedding_layer,
    embedding_parameters,
    head_layer,
    mlp_parameters,
    transformer_layer,
)
from cosim.models.parts import Exchange, Layer
from cosim.models.schedule import ScheduleName
from cosim.models.training import Training
from cosim.registry import Named
from cosim.spec import SizeBytes
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import DeviceMesh, ImportReport, Workload


class Transformer(WorkloadSpec):
    """Dense transformer training, data x tensor x pipeline parallel, timed by a GPU's compute model."""

    layers: PositiveInt = Field(description="transformer layers")
    hidden: PositiveInt = Field(description="hidden size h")
    heads: PositiveInt = Field(description="attention heads, a multiple of tensor_parallel")
    ffn_multiplier: PositiveInt = Field(default=4, description="inner size of the MLP, in h")
    vocabulary: PositiveInt = Field(description="tokens in the vocabulary")
    sequence: PositiveInt = Field(description="sequence length s")
    micro_batch: PositiveInt = Field(default=1, description="sequences per replica and micro-batch")
    micro_batches: PositiveInt = Field(default=1, description="micro-batches per iteration")
    data_parallel: PositiveInt = Field(default=1, description="replicas: mesh axis dp")
    tensor_parallel: PositiveInt = Field(default=1, description="ranks that share a layer: mesh axis tp")
    pipeline_parallel: PositiveInt = Field(default=1, description="stages: mesh axis pp")
    schedule: ScheduleName = Field(default="1f1b", description="order of a stage's passes")
    virtual_stages: PositiveInt = Field(default=1, description="interleaved: chunks of layers on each stage")
    sequence_parallel: bool = Field(
        default=False, description="tensor-parallel ranks share norms and dropouts, too"
    )
    attention: Attention = Field(default="flash", description="one kernel, or scores, softmax, product apart")
    recompute: Recompute = Field(
        default="none",
        description="what backward runs again: nothing, selective: scores and softmax, full: the layer",
    )
    dtype: DType = Field(default="bf16", description="of weights and activations")
    gradient_dtype: DType = Field(default="fp32", description="of gradients, as they are exchanged")
    overlap_gradients: bool = Field(
        default=True, description="exchange gradients while backward goes on, or all at the end"
    )
    bucket: SizeBytes = Field(default=25 * 2**20, description="gradients exchanged at once, at least")
    sharded_optimizer: bool = Field(
        default=False, description="optimizer states sharded over dp (ZeRO stage 1), not on every rank"
    )
    scatter_gather: bool = Field(
        default=True, description="between stages, tp ranks send a share each, and gather it at the receiver"
    )
    blocking_sends: bool = Field(
        default=False, description="computation waits until what it sent to the next stage has arrived"
    )
    synchronous_passes: bool = Field(
        default=False,
        description="the host waits for the GPU after each pass, as Megatron-LM's timers make it",
    )
    synchronous_exchanges: bool = Field(
        default=False,
        description="the host waits for each tensor-parallel exchange, as NCCL_BLOCKING_WAIT=1 makes it",
    )
    gpu: Annotated[GpuSpec, Named("cosim.gpus")] = Field(description="GPU, with its compute model")

    @model_validator(mode="after")
    def _fits(self) -> Transformer:
        if isinstance(self.gpu, Gpu):
            self.gpu.peak(self.dtype)
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} isn't a multiple of heads {self.heads}")
        needed = [("heads", "tensor_parallel"), ("vocabulary", "tensor_parallel")]
        if self.sequence_parallel:
            needed.append(("sequence", "tensor_parallel"))
        if self.schedule == "interleaved":
            needed.append(("micro_batches", "pipeline_parallel"))
        for name, divisor in needed:
            _divides(name, getattr(self, name), divisor, getattr(self, divisor))
        parts = self.pipeline_parallel * self.virtual_stages
        _divides("layers", self.layers, "pipeline_parallel x virtual_stages", parts)
        if self.virtual_stages > 1 and (self.schedule != "interleaved" or self.pipeline_parallel == 1):
            raise ValueError(
                f"virtual_stages {self.virtual_stages} needs `schedule: interleaved` and several stages"
            )
        return self

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of what this parallelism doesn't have."""
        idle: list[tuple[str, str]] = []
        if self.data_parallel == 1:
            why = "data_parallel is 1: no gradients are exchanged"
            idle += [(name, why) for name in ("bucket", "overlap_gradients", "sharded_optimizer")]
        elif not self.overlap_gradients:
            idle.append(("bucket", "gradients are exchanged at the end (overlap_gradients: false)"))
        if self.pipeline_parallel == 1:
            why = "pipeline_parallel is 1: there is one stage"
            idle += [(name, why) for name in ("scatter_gather", "blocking_sends")]
        if self.tensor_parallel == 1:
            why = "tensor_parallel is 1: a layer is whole"
            idle += [(name, why) for name in ("sequence_parallel", "scatter_gather", "synchronous_exchanges")]
        return [(name, why) for name, why in dict(idle).items() if name in self.model_fields_set]

    @property
    def shape(self) -> Shape:
        """Sizes of a layer."""
        return Shape(
            self.micro_batch,
            self.sequence,
            self.hidden,
            self.heads,
            self.ffn_multiplier * self.hidden,
            self.vocabulary,
            self.tensor_parallel,
            DTYPE_BYTES[self.dtype],
            self.sequence_parallel,
            self.attention,
            self.recompute,
        )

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        shape = self.shape
        per_layer = attention_parameters(shape) + mlp_parameters(shape)
        return self.layers * per_layer + embedding_parameters(shape)

    def stages(self) -> list[list[list[Layer]]]:
        """Layers by stage and chunk; the head has a copy of the embedding where it isn't on its stage."""
        shape, deep = self.shape, self.pipeline_parallel
        each = self.layers // (deep * self.virtual_stages)
        stages = [
            [
                [transformer_layer(f"layer {(chunk * deep + stage) * each + k}", shape) for k in range(each)]
                for chunk in range(self.virtual_stages)
            ]
            for stage in range(deep)
        ]
        stages[0][0].insert(0, embedding_layer(shape))
        stages[-1][-1].append(head_layer(shape, copy=deep > 1))
        return stages

    def training(self) -> Training:
        """How an iteration is done."""
        shape, tp = self.shape, self.tensor_parallel
        shared = tp if (self.scatter_gather or self.sequence_parallel) else 1
        boundary = shape.activation_bytes // shared
        gathered = shared > 1 and not self.sequence_parallel and self.pipeline_parallel > 1
        width = DTYPE_BYTES[self.gradient_dtype]
        return Training(
            mesh=DeviceMesh({"pp": self.pipeline_parallel, "dp": self.data_parallel, "tp": tp}),
            micro_batches=self.micro_batches,
            schedule=self.schedule,
            boundary_bytes=boundary,
            boundary_gather=Exchange("all_gather", TP, boundary) if gathered else None,
            tied_bytes=self.vocabulary // tp * self.hidden * width if self.pipeline_parallel > 1 else 0,
            gradient_width=width,
            parameter_width=DTYPE_BYTES[self.dtype],
            bucket=self.bucket if self.overlap_gradients and self.data_parallel > 1 else None,
            sharded_optimizer=self.sharded_optimizer,
            blocking_sends=self.blocking_sends,
            synchronous_passes=self.synchronous_passes,
            synchronous_exchanges=self.synchronous_exchanges,
        )

    def build(self, context: Context) -> Workload:
        """One program for each stage, whatever the number of replicas.

        Raises
        ------
        WorkloadError
            The GPU's table can't be read, or has no such number type.
        """
        gpu = self.gpu.build(context)
        try:
            gpu.peak(self.dtype)
        except ValueError as error:
            raise WorkloadError(str(error)) from error
        overlaps = self.overlap_gradients and self.data_parallel > 1
        report = ImportReport(
            invented=(
                f"computation by a compute model of {gpu.name} ({gpu.source}), {gpu.trust(self.dtype)}",
                f"{self.parameters / 1e9:.4g} G parameters, gradients in {self.gradient_dtype}",
                *((gpu.beside_collectives(),) if overlaps else ()),
            ),
        )
        return build_training(
            "transformer", self.stages(), self.training(), GpuTimer(gpu, self.dtype), report
        )


def _divides(name: str, value: int, by: str, divisor: int) -> None:
    if value % divisor:
        raise ValueError(
            f"{name} {value} isn't a multiple of {by} {divisor}; {-(-value // divisor) * divisor} would be"
        )
