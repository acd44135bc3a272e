"""Kind ``transformer``: the kind ``model`` for a GPT, its sizes and parallelism said one by one.

``{kind: transformer, layers: 8, hidden: 4096, tensor_parallel: 4, ...}`` is ``{kind: model, model: {kind:
transformer, layers: 8, hidden: 4096, ...}, parallel: {tp: 4}, framework: megatron}``, with what a GPT has in
Megatron-LM (learned positions, layer norms, biases, dropout, GeLU, a tied head), and runs whether it fits
into the GPU's memory or not.
"""

from __future__ import annotations

from functools import cached_property

from pydantic import Field, PositiveInt, ValidationError, model_validator

from cosim.context import Context
from cosim.models.catalogue.cut import Parallel
from cosim.models.catalogue.language import gpt
from cosim.models.catalogue.workload import ModelWorkload, TrainedWorkload
from cosim.models.frameworks import Megatron, MegatronSettings
from cosim.models.schedule import ScheduleName
from cosim.workload.program import Workload

_PARALLEL = {
    "dp": "data_parallel",
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "sp": "sequence_parallel",
    "schedule": "schedule",
    "virtual_stages": "virtual_stages",
}
"""What ``model`` calls them, and what they are called here."""


class Transformer(TrainedWorkload, MegatronSettings):
    """A GPT under data, tensor and pipeline parallelism, as Megatron-LM trains it: `model` in short."""

    layers: PositiveInt = Field(le=1_000_000, description="transformer layers")
    hidden: PositiveInt = Field(description="hidden size h")
    heads: PositiveInt = Field(description="attention heads, a multiple of tensor_parallel")
    vocabulary: PositiveInt = Field(description="tokens in the vocabulary")
    sequence: PositiveInt = Field(description="sequence length s")
    micro_batches: PositiveInt = Field(1, description="micro-batches per iteration and replica")
    data_parallel: PositiveInt = Field(1, description="replicas: mesh axis dp")
    tensor_parallel: PositiveInt = Field(1, description="ranks that share a layer: mesh axis tp")
    pipeline_parallel: PositiveInt = Field(1, description="stages: mesh axis pp")
    schedule: ScheduleName = Field("1f1b", description="order of a stage's passes")
    virtual_stages: PositiveInt = Field(1, description="interleaved: chunks of layers on each stage")
    sequence_parallel: bool = Field(False, description="tensor-parallel ranks share norms and dropouts, too")

    @model_validator(mode="after")
    def _fits(self) -> Transformer:
        try:
            self.model  # noqa: B018
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        return self

    @cached_property
    def model(self) -> ModelWorkload:
        """The same as kind ``model``."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return ModelWorkload(
            model=gpt(
                "transformer", self.layers, self.hidden, self.heads, "the scenario",
                ffn=4 * self.hidden, vocabulary=self.vocabulary, sequence=self.sequence,
            ),
            parallel=Parallel(
                **{"sp": False}
                | {name: given[here] for name, here in _PARALLEL.items() if here in given}
            ),
            framework=Megatron(
                **{name: given[name] for name in MegatronSettings.model_fields if name in given}
            ),
            batch=self.micro_batches * self.micro_batch * self.data_parallel,
            memory="ignore",
            **{name: given[name] for name in TrainedWorkload.model_fields if name in given},
        )  # fmt: skip

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of what this parallelism doesn't have."""
        model = self.model
        framework = dict(self.idle_with(stages=self.pipeline_parallel, tensor_parallel=self.tensor_parallel))
        parallel = {_PARALLEL[name]: why for name, why in model.parallel.idle_settings()}
        own = dict(model.idle_settings())
        return [
            (name, why) for name, why in (own | framework | parallel).items() if name in self.model_fields_set
        ]

    def memory_needed(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.model.memory_needed()

    def tokens_done(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.model.tokens_done()

    def size_about(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.model.size_about()

    def build(self, context: Context) -> Workload:
        """One program for each stage, whatever the number of replicas.

        Raises
        ------
        WorkloadError
            The GPU's table can't be read, or has no such number type.
        """
        return self.model.build(context)
