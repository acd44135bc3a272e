"""Kind ``layers``: a model's layers, measured or timed on a GPU, cut into stages, or with stale gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.files.import_report import ImportReport
from cosim.registry import Named, find
from cosim.spec import RateBps, SizeBytes, Spec, TimePs
from cosim.units import PS_PER_S, format_rate, format_size, format_time
from cosim.workload.contract import WorkloadSpec
from cosim.workload.layers.graph_file import read_graph
from cosim.workload.layers.partition import Equation, Level, parse_levels, partition, predicted_s
from cosim.workload.layers.pipeline import Schedule, minibatches_of, pipeline
from cosim.workload.layers.plan import PlannedStage, StagePlan, data_parallel, written_plan
from cosim.workload.layers.profile import LayerProfile, ProfiledLayer
from cosim.workload.layers.staleness import Order, averaged, fewest_stale, layer_by_layer
from cosim.workload.program import Workload
from cosim.workload.training_settings import FirstLayers, LocalSgd


class WrittenLayer(Spec):
    """A layer for one minibatch."""

    name: str | None = Field(None, description="for reports")
    forward: TimePs = Field(ge=0, description="time of its forward pass")
    backward: TimePs = Field(ge=0, description="time of its backward pass")
    activation: SizeBytes = Field(0, ge=0, description="bytes of its output")
    parameters: SizeBytes = Field(0, ge=0, description="bytes of its weights")


class WrittenStage(Spec):
    """A stage of a plan."""

    layers: tuple[NonNegativeInt, NonNegativeInt] = Field(
        description="from the first up to the second, from 0"
    )
    workers: PositiveInt = Field(description="replicas of it")


class LayersWorkload(WorkloadSpec):
    """Layers of a measured model: a pipeline of PipeDream's stages, or data parallelism that may be stale.

    One stage is data parallelism layer by layer: an all-reduce for each layer, ``staleness``, ``local_sgd``.
    Several are a pipeline.
    """

    file: str | None = Field(None, description="PipeDream's graph.txt; or give layers")
    layers: list[WrittenLayer] | None = Field(None, description="a chain of layers; or give a file")
    model: Annotated[Spec | None, Named("cosim.models")] = Field(
        None, description="of the catalogue, its layers timed on a GPU; or give a file"
    )
    gpu: Annotated[Spec | None, Named("cosim.gpus")] = Field(None, description="of a model: what times it")
    micro_batch: PositiveInt = Field(32, description="of a model: samples or sequences of a minibatch")
    sequence: PositiveInt | None = Field(
        None, description="of a model: tokens of a sequence; omitted: as in training it"
    )
    dtype: str = Field("fp32", description="of a model: its weights, activations and gradients")
    workers: PositiveInt = Field(description="GPUs")
    plan: str | list[WrittenStage] = Field(
        "auto",
        description="auto: as partitioned, data_parallel, straight: a worker for each stage, 15-1: "
        "by workers, stages of like computation, or [{layers: [0, 33], workers: 15}, ...]",
    )
    schedule: Schedule = Field(
        "1f1b_async", description="minibatches follow each other without end, or are flushed: 1f1b, gpipe"
    )
    minibatches: PositiveInt | None = Field(
        None, description="of an iteration; omitted: as few as go evenly, flushed at least four of each stage"
    )
    rate: RateBps | None = Field(None, description="plan or staleness auto: of each worker's link")
    levels: str | None = Field(None, description="plan auto: WORKERS@RATE of each level: 4@16GB/s,4@10Gbps")
    equation: Equation = Field(
        "paper", description="plan auto: what a stage takes, as published or as released"
    )
    memory: SizeBytes | None = Field(None, ge=1, description="of a worker; omitted: not checked")
    staleness: Literal[0, 1, "auto"] | FirstLayers = Field(
        0, description="gradients used an iteration late: of no layer, all, {first: 2}, as many as help"
    )
    order: Order = Field(
        "queue", description="which gradients are synchronised first: as they come, first layers"
    )
    memory_rate: RateBps | None = Field(
        None, description="of the GPU's memory: times the copy that predicts stale weights; omitted: no copy"
    )
    local_sgd: LocalSgd | None = Field(None, description="average weights every so many steps, not gradients")

    @model_validator(mode="after")
    def _one_source(self) -> LayersWorkload:
        if sum(one is not None for one in (self.file, self.layers, self.model)) != 1:
            raise ValueError("give either a file, or layers, or a model and a gpu")
        if (self.model is None) != (self.gpu is None):
            raise ValueError("a model needs a gpu, as in `gpu: v100-sxm2`, and a gpu a model")
        if self.model is not None:
            self._trained()
        if self.layers == []:
            raise ValueError("layers: at least one")
        if self.plan == "auto" and self.workers > 1 and self.rate is None and self.levels is None:
            raise ValueError("plan: auto needs a rate, as in `rate: 10Gbps`, or levels")
        if self.staleness == "auto" and self.rate is None:
            raise ValueError("staleness: auto needs a rate, as in `rate: 10Gbps`")
        if self.local_sgd is not None and self.staleness != 0:
            raise ValueError("local_sgd averages weights: there are no gradients for staleness to be of")
        return self

    def size_about(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        steps = 1 if self.local_sgd is None else self.local_sgd.steps
        return self.workers + 4 * steps + 4 * len(self.layers or ())

    def idle_settings(self) -> list[tuple[str, str]]:
        """A plan that is given, a pipeline where there is none, gradients that aren't late."""
        why: dict[str, str] = {}
        if self.plan != "auto":
            names = ["levels", "equation", *([] if self.staleness == "auto" else ["rate"])]
            why |= dict.fromkeys(names, "the plan is given")
        if self.plan == "data_parallel":
            why |= dict.fromkeys(("schedule", "minibatches"), "there is one stage: no pipeline")
        if self.staleness == 0:
            why["memory_rate"] = "no gradients are late: no weights are predicted"
        if self.local_sgd is not None:
            why["order"] = "weights are averaged at once"
        if self.model is None:
            why |= dict.fromkeys(("micro_batch", "sequence", "dtype"), "layers are measured, not a model's")
        return [(name, said) for name, said in why.items() if name in self.model_fields_set]

    def build(self, context: Context) -> Workload:
        """A program for each worker of a pipeline, one for all where there is one stage.

        Raises
        ------
        WorkloadError
            A file that can't be meant, with its line; a plan that doesn't fit layers, workers or memory.
        """
        profile = self._profile(context)
        plan = self._plan(profile)
        plan.check(profile, self.workers, self.memory)
        if len(plan.stages) == 1:
            return self._replicated(profile)
        if self.staleness != 0 or self.local_sgd is not None:
            what = "staleness" if self.staleness != 0 else "local_sgd"
            raise WorkloadError(
                f"{what} is of data parallelism, but plan {plan} has {len(plan.stages)} stages",
                hint="plan: data_parallel",
            )
        minibatches = minibatches_of(plan, self.schedule, self.minibatches)
        made = pipeline(profile, plan, self.schedule, minibatches)
        said = ImportReport(read=self._said(profile, plan, minibatches))
        return replace(made, report=said, minibatches=minibatches)

    def _trained(self) -> Any:
        """The model, trained by replicas: two, so that layers that talk to others show it."""
        settings: dict[str, Any] = {
            "model": self.model,
            "gpu": self.gpu,
            "dtype": self.dtype,
            "gradient_dtype": self.dtype,
        }
        settings |= {"micro_batch": self.micro_batch, "parallel": {"dp": 2}, "memory": "ignore"}
        if self.sequence is not None:
            settings["sequence"] = self.sequence
        try:
            return find("cosim.workloads", "model")(**settings)
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            said = wrong["msg"].removeprefix("Value error, ")
            raise ValueError(f"{where}: {said}" if where else said) from None

    def _profile(self, context: Context) -> LayerProfile:
        if self.model is not None:
            found: LayerProfile = self._trained().layer_profile(context)
            return found
        if self.file is not None:
            return read_graph(context.base / self.file)
        return LayerProfile(
            "layers",
            tuple(
                ProfiledLayer(
                    one.name or f"layer {number}", one.forward, one.backward, one.activation, one.parameters
                )
                for number, one in enumerate(self.layers or ())
            ),
        )

    def _plan(self, profile: LayerProfile) -> StagePlan:
        if isinstance(self.plan, list):
            return StagePlan(tuple(PlannedStage(*one.layers, one.workers) for one in self.plan))
        if self.plan == "data_parallel" or (self.plan == "auto" and self.workers == 1):
            return data_parallel(profile, self.workers)
        if self.plan == "straight":
            return written_plan("-".join(["1"] * self.workers), profile, self.workers)
        if self.plan != "auto":
            return written_plan(self.plan, profile, self.workers)
        if self.levels is not None:
            levels = parse_levels(self.levels, self.workers)
        else:
            levels = [Level(self.workers, self.rate or 0.0)]
        return partition(profile, levels, equation=self.equation, memory_bytes=self.memory).plan

    def _said(self, profile: LayerProfile, plan: StagePlan, minibatches: int) -> tuple[str, ...]:
        """What the page says of a pipeline."""
        kept = [
            f"stage {number}: layers [{stage.first}, {stage.last}] on {stage.workers}, {versions} versions "
            f"of weights, {format_size(memory)} a worker with their activations"
            for number, (stage, versions, memory) in enumerate(
                zip(plan.stages, plan.versions, plan.memory_bytes(profile), strict=True)
            )
        ]
        said = [f"{len(profile)} layers; an iteration is {minibatches} minibatches, {self.schedule}", *kept]
        if self.rate is not None:
            seconds = predicted_s(profile, plan, self.rate, equation=self.equation)
            said.append(
                f"predicted at {format_rate(self.rate)}: {format_time(round(seconds * PS_PER_S))} a "
                f"minibatch, {format_time(round(seconds * minibatches * PS_PER_S))} an iteration"
            )
        return tuple(said)

    # -- one stage ---------------------------------------------------------------------------------------

    def _replicated(self, profile: LayerProfile) -> Workload:
        weights = int(profile.parameter_bytes.sum())
        head = f"{len(profile)} layers on each of {self.workers} workers, an iteration is a minibatch of each"
        if self.local_sgd is not None:
            steps, late = self.local_sgd.steps, self.local_sgd.late
            when = "used one period late" if late else "waited for"
            said = (f"{head} {steps} times", f"local SGD: weights averaged every {steps} steps, {when}")
            made = averaged(profile, self.workers, steps, late=late)
            return replace(made, report=ImportReport(read=said), minibatches=self.workers * steps)
        stale = self._stale(profile)
        late_bytes = int(profile.parameter_bytes[:stale].sum())
        kept = f"weights {format_size(weights)}" + (
            f", and {format_size(late_bytes)} predicted" if stale else ""
        )
        copy = 0 if self.memory_rate is None else round(16 * late_bytes / self.memory_rate * PS_PER_S)
        said = (
            head,
            f"staleness: {self._named(profile, stale)}; {kept}",
        )
        made = layer_by_layer(profile, self.workers, stale=stale, order=self.order, copy_ps=copy)
        return replace(made, report=ImportReport(read=said), minibatches=self.workers)

    def _named(self, profile: LayerProfile, stale: int) -> str:
        if stale == 0:
            return "no layer"
        last = profile.layers[stale - 1].name
        return f"the first {stale} of {len(profile)} layers, up to {last}, one iteration late"

    def _stale(self, profile: LayerProfile) -> int:
        if isinstance(self.staleness, FirstLayers):
            if self.staleness.first > len(profile):
                raise WorkloadError(
                    f"staleness: the first {self.staleness.first} of {len(profile)} layers",
                    hint=f"up to {len(profile)}, or staleness: 1 for all",
                )
            return self.staleness.first
        if self.staleness != "auto":
            return len(profile) * self.staleness
        assert self.rate is not None
        share = 16 * (self.workers - 1) / self.workers / self.rate
        return fewest_stale(
            [one.forward_ps for one in profile.layers],
            [one.backward_ps for one in profile.layers],
            [round(one.parameter_bytes * share * PS_PER_S) for one in profile.layers],
            self.order,
        )
