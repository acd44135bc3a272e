"""Kind ``model``: a model of the catalogue, trained or serving, under any mix of parallelisms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PositiveInt, model_validator

from cosim.answers import check_answer, is_foreign, misfit
from cosim.context import Context
from cosim.errors import InfeasibleError, WorkloadError
from cosim.files.import_report import ImportReport
from cosim.gpu.contract import GpuSpec
from cosim.gpu.gpus import DType, Gpu, build_gpu
from cosim.gpu.kernels import memory
from cosim.host.contract import HostSpec
from cosim.models.catalogue.assemble import Graphed, Stretched
from cosim.models.catalogue.cut import FUSED, Attention, Parallel, Recipe, Recompute, Recomputed
from cosim.models.catalogue.fits import divides
from cosim.models.catalogue.memory import Memory
from cosim.models.contract import Framework, Model
from cosim.models.frameworks import Megatron, PyTorch
from cosim.models.job import ModelJob, build_training
from cosim.models.offload import Offload
from cosim.models.presets import PresetName, filled
from cosim.models.training import Timer
from cosim.registry import Named, name_of
from cosim.spec import RateBps, SizeBytes
from cosim.units import format_memory
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import IterationWork, Operation, Workload
from cosim.workload.training_settings import FirstLayers, LocalSgd

if TYPE_CHECKING:
    from cosim.workload.layers.profile import LayerProfile
    from cosim.workload.stale_gradients import IsGradient

_OPERATIONS_OF_A_LAYER = 10
"""About so many has a layer in a micro-batch, forward and backward."""


class TrainedWorkload(WorkloadSpec):
    """How a model is trained, whatever the model: on which GPU, in which number types, what is kept."""

    gpu: Annotated[GpuSpec, Named("cosim.gpus")] = Field(description="GPU, with its compute model")
    host: Annotated[HostSpec, Named("cosim.hosts")] | None = Field(
        default=None, description="what issues its operators; omitted: what the GPU's measured jobs ran on"
    )
    micro_batch: PositiveInt = Field(
        1,
        description="sequences or samples that a replica works on at once; omitted: 1, decoding all of its "
        "batch, in pp parts",
    )
    recompute: Recompute | tuple[Recomputed, ...] = Field(
        "none",
        description="what backward runs again: nothing, selective: scores and softmax (pytorch: what"
        " torchtitan doesn't save by operator), full: the layer; or operators, [norm, activation]",
    )
    attention: Attention | None = Field(
        None,
        description="one kernel, or scores, softmax, product apart; omitted: flash, the GPU's newest, under"
        " framework pytorch flash2",
    )
    dtype: DType = Field("bf16", description="of weights and activations")
    recipe: Recipe | None = Field(
        None, description="narrow type of linear layers' products: fp8, mxfp8, nvfp4; omitted: as dtype"
    )
    gradient_dtype: DType = Field("fp32", description="of gradients, as they are kept and exchanged")
    overlap_gradients: bool = Field(
        True, description="exchange gradients while backward goes on, or all at the end"
    )
    bucket: SizeBytes = Field(25 * 2**20, description="gradients exchanged at once, at least")
    sharded_optimizer: bool = Field(
        False, description="optimizer states sharded over the replicas (ZeRO stage 1), not on every rank"
    )
    staleness: Literal[0, 1, "auto"] | FirstLayers = Field(
        0,
        description="1: gradients are used an iteration late, with weights predicted from them; {first: 4}: "
        "those of the first layers, as far as no bucket carries others with them; auto: as few as help",
    )
    rate: RateBps | None = Field(None, description="staleness auto: of each GPU's link")
    local_sgd: LocalSgd | None = Field(None, description="average weights every so many steps, not gradients")

    def runs_on(self, context: Context) -> GpuSpec:  # noqa: ARG002 - a setting, no file
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.gpu

    def issued_by(self) -> HostSpec | None:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.host

    def built_gpu(self, context: Context) -> Gpu:
        """Its GPU, on its host; see :func:`~cosim.gpu.gpus.build_gpu`."""
        return build_gpu(self.gpu, self.host, context)


def _with(report: ImportReport, line: str) -> ImportReport:
    return replace(report, read=(*report.read, line))


class ModelWorkload(TrainedWorkload):
    """A model of the catalogue (`cosim list model`), training or serving, under any parallelism.

    Refused where it doesn't fit into the GPU's memory, with what would.
    """

    model: Annotated[Model, Named("cosim.models")] = Field(
        description="by name, or {kind: NAME, layers: 8, ...} with sizes of your own"
    )
    parallel: Parallel = Field(Parallel(), description="how many ranks share what")
    preset: PresetName | None = Field(
        None,
        description="a script by name and date, whose settings hold where the scenario gives none"
        " (`cosim list workload model`); omitted: each setting's own default",
    )
    framework: Annotated[Framework, Named("cosim.frameworks")] = Field(
        Megatron(), description="what trains it: how kernels are fused, what is exchanged when"
    )
    task: Literal["training", "prefill", "decode"] = Field(
        "training", description="an iteration; reading prompts; making tokens one by one"
    )
    batch: PositiveInt | None = Field(
        None, description="sequences or samples of an iteration; omitted: each replica has pp micro-batches"
    )
    sequence: PositiveInt | None = Field(
        None, description="tokens of a sequence, decoding: before the new one; omitted: as in training it"
    )
    packed: PositiveInt | None = Field(
        None,
        description="sequences are packed of documents of so many tokens on average, which don't see each"
        " other; omitted: whole",
    )
    tokens: PositiveInt = Field(1, description="decoding: tokens made of each sequence in an iteration")
    cuda_graphs: bool | None = Field(
        None, description="the host launches graphs, and is never waited for; omitted: when serving"
    )
    offload: Offload | None = Field(
        None, description="what lives in the scenario's remote memory: {} for what doesn't fit otherwise"
    )
    memory: Literal["check", "ignore"] = Field(
        "check", description="refuse what doesn't fit into the GPU's memory, or run it anyway"
    )
    memory_reserve: SizeBytes = Field(
        4 * 2**30, ge=0, description="of a GPU's memory for CUDA, NCCL and fragmentation"
    )

    @model_validator(mode="before")
    @classmethod
    def _as_its_preset(cls, data: Any) -> Any:
        return filled(data) if isinstance(data, dict) and data.get("preset") is not None else data

    @model_validator(mode="after")
    def _fits(self) -> ModelWorkload:
        if isinstance(self.gpu, Gpu):
            self.gpu.peak(self.dtype)
        divides("batch", self.samples, "replicas x micro_batch", self.parallel.replicas * self.together)
        self.model.check(self)
        self._check_late()
        if self.offload is not None and self.task != "training":
            raise ValueError(f"offload is of training; {self.task} has neither gradients nor an optimizer")
        return self

    def _check_late(self) -> None:
        """Refuse stale gradients of what has none, or not whole ones."""
        if self.staleness == 0 and self.local_sgd is None:
            return
        name = "staleness" if self.staleness != 0 else "local_sgd"
        if self.staleness == "auto" and self.rate is None:
            raise ValueError("staleness: auto needs a rate, as in `rate: 10Gbps`")
        if self.staleness != 0 and self.local_sgd is not None:
            raise ValueError("local_sgd averages weights: there are no gradients for staleness to be of")
        if self.offload is not None:
            raise ValueError(f"{name} with offload: late gradients in remote memory are not modelled")
        if self.task != "training":
            raise ValueError(f"{name} is of training; {self.task} has no gradients")
        if self.sharded_optimizer or self.parallel.fsdp > 1:
            raise ValueError(f"{name} needs whole replicas: without sharded_optimizer and fsdp")

    def other_scripts(self) -> list[tuple[str, str]]:
        """See :class:`~cosim.workload.contract.WorkloadSpec`: presets, attention, recomputation, norms."""
        if self.task != "training":
            return []
        found: list[tuple[str, str]] = []
        if self.preset is None:
            from cosim.models.preset_settings import presets_of

            found += [("preset", name) for name in presets_of(self.framework)]
        if "attention" not in self.model_fields_set:
            found += [("attention", one) for one in FUSED if one != self.attends]
        if "recompute" not in self.model_fields_set:
            found += [("recompute", "selective"), ("recompute", "full")]
        if isinstance(self.framework, PyTorch) and "norm" not in self.framework.model_fields_set:
            found.append(("framework.norm", "fused"))
        return found

    def idle_settings(self) -> list[tuple[str, str]]:
        """Settings of what this job doesn't have."""
        idle: list[tuple[str, str, bool]] = []
        training = self.task == "training"
        if not training:
            why = f"{self.task} has no backward pass"
            names = ("recompute", "gradient_dtype", "overlap_gradients", "bucket", "sharded_optimizer")
            idle += [(name, why, True) for name in names]
        elif self.parallel.size(self.parallel.gradient_axes) == 1:
            why = "there is one replica: no gradients are exchanged"
            idle += [(name, why, True) for name in ("bucket", "sharded_optimizer", "staleness", "local_sgd")]
            idle.append(("overlap_gradients", why, self.parallel.fsdp == 1))
        elif not self.overlap_gradients:
            idle.append(("bucket", "gradients are exchanged at the end (overlap_gradients: false)", True))
        idle.append(("rate", "staleness is not auto", self.staleness != "auto"))
        idle.append(("tokens", f"{self.task} makes none", self.task != "decode"))
        no_size = isinstance(self.gpu, Gpu) and self.gpu.memory is None
        unasked = no_size or self.memory == "ignore"
        idle.append(("memory_reserve", "nobody asks whether the job fits", unasked))
        idle += [(name, why, True) for name, why in self.framework.idle_under(self)]
        found = [(name, why) for name, why, is_idle in idle if is_idle and name in self.model_fields_set]
        if self.preset is not None:  # nobody gave what is its own
            from cosim.models.preset_settings import unchanged

            own = unchanged(self.preset, self)
            found = [
                each for each in found if own.isdisjoint((each[0], f"framework.{each[1].split(':')[0]}"))
            ]
        if not self.model.is_uneven() and "imbalance" in self.parallel.model_fields_set:
            found.append(("parallel", "imbalance: the model has neither experts nor tables"))
        return found

    # -- what follows from the settings -----------------------------------------------------------------

    @property
    def cut_by(self) -> Parallel:
        """The parallelism, sequence parallelism being for training unless asked for."""
        if self.task == "training" or self.parallel.sp is not None:
            return self.parallel
        return self.parallel.model_copy(update={"sp": False})

    @property
    def attends(self) -> Attention:
        """``attention``, or the framework's own."""
        return self.attention or self.framework.own_attention

    @property
    def together(self) -> int:
        """``micro_batch``; where it isn't given, decoding takes a replica's sequences in one pass a stage."""
        if self.task != "decode" or self.batch is None or "micro_batch" in self.model_fields_set:
            return self.micro_batch
        own = max(self.batch // self.parallel.replicas, 1)
        return own if own % self.parallel.pp else own // self.parallel.pp

    @property
    def samples(self) -> int:
        """Samples of an iteration, over all replicas."""
        return self.batch or self.parallel.replicas * self.micro_batch * self.parallel.pp

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a replica."""
        return self.samples // (self.parallel.replicas * self.together)

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        return self.sequence or self.model.tokens

    def memory_needed(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.job().memory.total

    def tokens_done(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        steps = 1 if self.local_sgd is None else self.local_sgd.steps
        return self.samples * steps * (self.tokens if self.task == "decode" else self.length)

    def job(self) -> ModelJob:
        """Layers on stages, how an iteration is done, and bytes on each GPU.

        Raises
        ------
        InputError
            A plug-in gave something else.
        """
        job = self.model.job(self)
        author = self.framework if is_foreign(type(self.framework)) else self.model
        check_answer(author, "job", job, ModelJob)
        if is_foreign(type(author)) and (wrong := misfit(job.memory, Memory)):
            raise WorkloadError(f"{type(author).__name__}.job gave a ModelJob whose memory{wrong}")
        return job

    def layer_profile(self, context: Context) -> LayerProfile:
        """Times and bytes of one replica's layers, for whoever cuts the model between them.

        Raises
        ------
        WorkloadError
            Layers that talk to other replicas; a GPU whose table can't be read.
        """
        from cosim.models.catalogue.layer_profile import layer_profile

        return layer_profile(self, context)

    def size_about(self) -> int:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        steps = 1 if self.local_sgd is None else self.local_sgd.steps
        passes = self.model.num_layers * self.micro_batches * steps
        return self.parallel.world_size + _OPERATIONS_OF_A_LAYER * passes

    def build(self, context: Context) -> Workload:
        """One program for each stage, whatever the number of replicas.

        Raises
        ------
        WorkloadError
            It doesn't fit into the GPU's memory: says what would. Or the GPU's table can't be read.
        """
        gpu = self.built_gpu(context)
        try:
            gpu.peak(self.dtype)
        except ValueError as error:
            raise WorkloadError(str(error)) from error
        room = None if gpu.memory is None else gpu.memory - self.memory_reserve
        job = self.job()
        if self.offload is not None:
            from cosim.models.offload import offloaded

            job = offloaded(job, self.offload, room)
            if self.offload.activations:
                from cosim.models.activations import with_activations_out

                job = with_activations_out(job, self.offload.activations)
        overlaps = job.training.bucket is not None and self.task == "training"

        def on(one: Gpu, said: ImportReport, stretch: float = 1.0) -> Workload:
            timer = self._timer(one, stretch)
            return build_training(job.name, job.stages, job.training, timer, said, job.builder)

        gpu = gpu.clocked(lambda one: [program.busy_ps for program in on(one, ImportReport()).programs])
        ranks = self.parallel.world_size
        stretch = self.framework.stretch(ranks, lambda: on(gpu, ImportReport()).programs)
        self._check_memory(job, gpu)
        report = ImportReport(
            read=(
                f"{job.name} ({self.model.source}): {self.model.size}",
                f"memory of the fullest GPU {job.memory}" + self._of(job, gpu),
            ),
            assumed=(
                f"computation by a compute model of {gpu.name} ({gpu.source}), {self._trust(gpu)}",
                *((gpu.beside_collectives(),) if overlaps else ()),
                *self._said_of_preset(),
                *job.assumed,
            ),
            doubts=gpu.doubts(self.dtype),
        )
        made = on(gpu, report, stretch)
        sigmas = None
        if self.task == "training":
            sigmas = gpu.error(self.dtype, experts=self.model.is_uneven(), framework=self._framework)
            if self.preset is not None:
                from cosim.models.preset_settings import widened

                sigmas = widened(self.preset, self, sigmas)
        elif self.task == "decode" and not self.model.is_uneven():
            from cosim.models.preset_settings import widened

            sigmas = gpu.decode_error(self.dtype)
            sigmas = widened(self.preset or "vllm-0.19", self, sigmas, known=self.preset is not None)
        made = replace(made, error=sigmas, remote_bytes=job.memory.remote, work=self._work(job, gpu))
        return self._late(made, self._timer(gpu, stretch))

    def _said_of_preset(self) -> Iterable[str]:
        if self.preset is None:
            return ()
        from cosim.models.preset_settings import said_of

        return said_of(self.preset, self)

    @property
    def _framework(self) -> str | None:
        return name_of("cosim.frameworks", type(self.framework))

    def _trust(self, gpu: Gpu) -> str:
        """How far the compute model can be trusted for the task."""
        if self.task == "training":
            return gpu.trust(self.dtype, experts=self.model.is_uneven(), framework=self._framework)
        if self.task == "prefill":
            return "with what trainings reach: no prefill was held against it, and there is no interval"
        if self.model.is_uneven():
            return "with what trainings reach: no decode step of experts was held against it: no interval"
        return "decode steps were held against measured ones of dense models (validation/decode)"

    def _timer(self, gpu: Gpu, stretch: float) -> Timer:
        """What times this job's kernels on a GPU, so many times as long."""
        graphed = self.task != "training" if self.cuda_graphs is None else self.cuda_graphs
        if graphed:  # nor does the GPU idle between two kernels
            gpu = gpu.model_copy(update={"host": gpu.host.model_copy(update={"gap_time": 0})})
        timer: Timer = gpu.timer(self.dtype)
        if stretch > 1:
            timer = Stretched(timer, stretch)
        return Graphed(timer) if graphed else timer

    def _work(self, job: ModelJob, gpu: Gpu) -> IterationWork | None:
        """What an iteration gets done, of training."""
        flops = self.model.forward_flops(self.length)
        if self.task != "training" or flops is None:
            return None
        steps = 1 if self.local_sgd is None else self.local_sgd.steps
        samples, peak = self.samples * steps, gpu.peak(self.dtype) * self.parallel.world_size
        tokens = samples * self.length if self.model.tokens > 1 else 0
        memory = job.memory.total, None if gpu.memory is None else int(gpu.memory)
        return IterationWork(3 * flops * samples, peak, samples, tokens, *memory)

    def _late(self, made: Workload, timer: Timer) -> Workload:
        """Gradients an iteration late, or weights averaged now and then."""
        axes = self.parallel.gradient_axes, self.parallel.expert_axes

        def is_gradient(one: Operation) -> bool:
            return one.collective == "all_reduce" and one.phase == "backward" and one.axes in axes

        if self.staleness != 0:
            return self._stale(made, timer, is_gradient)
        if self.local_sgd is not None:
            steps, late = self.local_sgd.steps, self.local_sgd.late
            when = ", used one period late" if late else ""
            said = f"local SGD: an iteration is {steps} steps, weights averaged after them{when}"
            from cosim.workload.stale_gradients import averaged_every

            return replace(
                averaged_every(made, is_gradient, steps, late=late), report=_with(made.report, said)
            )
        return made

    def _stale(self, made: Workload, timer: Timer, is_gradient: IsGradient) -> Workload:
        stages = self.job().stages

        def copy_ps(size_bytes: int) -> int:
            return timer.kernels_ps([memory(2 * size_bytes)])

        first = self.staleness.first if isinstance(self.staleness, FirstLayers) else None
        from cosim.models.catalogue.stale_layers import fewest_late_layers, with_late_layers

        if self.staleness == "auto":
            assert self.rate is not None
            first = fewest_late_layers(made, stages, is_gradient, copy_ps, self.rate)
        late, most = with_late_layers(made, stages, first, is_gradient, copy_ps)
        whose = "gradients" if first is None else f"gradients of the first {first} layers"
        if first and len(stages) == 1:
            whose += f", up to {[layer.name for chunk in stages[0] for layer in chunk][first - 1]},"
        said = f"staleness: {whose} are used an iteration late, {format_memory(most)} of them kept on a GPU"
        return replace(late, report=_with(made.report, said))

    # -- memory -------------------------------------------------------------------------------------------

    def _of(self, job: ModelJob, gpu: Gpu) -> str:
        if gpu.memory is None:
            return ""
        text = f"; of {format_memory(gpu.memory)}, {format_memory(self.memory_reserve)} of them reserved"
        over = job.memory.total > gpu.memory - self.memory_reserve
        return text + (": DOES NOT FIT, run all the same (memory: ignore)" if over else "")

    def _check_memory(self, job: ModelJob, gpu: Gpu) -> None:
        if gpu.memory is None or self.memory == "ignore":
            return
        room = gpu.memory - self.memory_reserve
        if job.memory.total <= room:
            return
        from cosim.models.catalogue.fitting import what_fits

        found = what_fits(self, room)
        if self.offload is None and self.task == "training":
            found.append("offload: {}, with the scenario's `memory:`")
        raise InfeasibleError(
            f"{job.name} does not fit on {gpu.name}: it has {format_memory(room)},"
            f" {format_memory(gpu.memory)} less {format_memory(self.memory_reserve)} reserved,"
            f" and the fullest GPU needs {job.memory}",
            hint=("what would fit: " + "; ".join(found) if found else "no nearby setting fits")
            + "; `memory: ignore` runs it all the same",
        )

    def with_settings(self, **changes: Any) -> ModelWorkload:
        """The same with other settings, checked; ``parallel`` as a mapping of changes to it.

        Raises
        ------
        ValueError
            Settings that don't go together.
        """
        values = {name: getattr(self, name) for name in type(self).model_fields}
        values["batch"] = self.samples
        parallel = changes.pop("parallel", None)
        if parallel:
            kept = {name: getattr(self.parallel, name) for name in Parallel.model_fields}
            values["parallel"] = Parallel(**{**kept, **parallel})
        return ModelWorkload(**{**values, **changes})
