"""Kind ``script``: a PyTorch script as a scenario's job, profiled when it is first built, and kept.

::

    jobs: [{workload: {kind: script, script: train.py, world_size: 64, arguments: [--tp, 8]}}]

What is kept (:mod:`cosim.profiler.kept`) is the file that ``cosim profile`` writes; it stands for the script
until a file that the script read, a package, or one of these settings is another.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from cosim.context import Context
from cosim.errors import InputError, Location, WorkloadError
from cosim.files.trust import check_file
from cosim.gpu.contract import GpuSpec
from cosim.gpu.gpus import build_gpu
from cosim.host.contract import HostSpec
from cosim.profiler import distributions, file, kept
from cosim.profiler.launch import ProfileRequest
from cosim.profiler.workload import build, named_gpu
from cosim.registry import Named
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import Workload

MOST_RANKS = 1 << 20


class ScriptWorkload(WorkloadSpec):
    """A PyTorch script, unmodified and without a GPU: profiled when it or what it reads has changed."""

    script: str = Field(description="the file, beside the scenario; with `module: true` a module's name")
    world_size: PositiveInt = Field(le=MOST_RANKS, description="ranks, as torchrun would start them")
    arguments: tuple[str | int | float, ...] = Field((), description="the script's, in a list")
    environment: dict[str, str | int] = Field({}, description="variables that the script is given beside")
    module: bool = Field(False, description="as `python -m` runs it")
    per_node: PositiveInt = Field(8, description="ranks of a host")
    iteration: Annotated[int, Field(ge=0)] = Field(
        1, description="which is taken, from 0; the first one may set things up"
    )
    parallelism: Literal["", "ddp", "zero1", "zero2", "zero3", "hsdp"] = Field(
        "", description="in place of the script's own data parallelism; empty: as it is"
    )
    profile_for: str = Field("h100-sxm", description="GPU of the catalogue that the script is told it has")
    gpu: Annotated[GpuSpec, Named("cosim.gpus")] | None = Field(
        None, description="time it on this one; omitted: the one that it is profiled for"
    )
    host: Annotated[HostSpec, Named("cosim.hosts")] | None = Field(
        default=None, description="what issues its operators; omitted: what the GPU's measured jobs ran on"
    )
    imbalance: Annotated[float, Field(ge=1, le=1000)] = Field(
        1.0, description="experts: the busiest rank's load over the mean"
    )
    routing: str = Field("even", description="experts that tokens go to: even, zipf:1.1, a file of counts")
    lengths: str = Field("", description="after how many tokens answers end: 512, geometric:200, a file")
    acceptance: str = Field("", description="probability that a drafted token holds: 0.7, a file")
    draw_seed: int = Field(0, description="of lengths and acceptance")
    skip_evaluation: bool = Field(False, description="each forward before the first backward is done once")
    compiled: bool = Field(True, description="torch.compile is followed; false: runs eagerly")
    verify: bool = Field(True, description="the last rank is profiled, too, and compared")

    def build(self, context: Context) -> Workload:
        """The profile that is kept, or a new one, timed; ``script`` is relative to ``context.base``.

        Raises
        ------
        WorkloadError
            A script that isn't there, that fails or never trains; no torch; a GPU that isn't in the
            catalogue.
        """
        base = context.base.resolve()
        if not self.module and (base / self.script).is_file():
            check_file(base / self.script)
        request = ProfileRequest(
            self.script if self.module else str(base / self.script),
            tuple(str(one) for one in self.arguments),
            world_size=self.world_size,
            gpu=self.profile_for,
            per_node=self.per_node,
            iteration=self.iteration,
            parallelism=self.parallelism,
            module=self.module,
            imbalance=self.imbalance,
            routing=distributions.placed(self.routing, base),
            lengths=distributions.placed(self.lengths, base),
            acceptance=distributions.placed(self.acceptance, base),
            seed=self.draw_seed,
            verify=self.verify,
            skip_evaluation=self.skip_evaluation,
            compile=self.compiled,
            folder=str(base),
            environment=tuple((name, str(value)) for name, value in sorted(self.environment.items())),
            note_reads=True,
        )
        try:
            path = kept.profiled(request)
        except InputError as error:
            place = error.location or Location(str(context.base / self.script))
            raise WorkloadError(error.message, location=place, hint=error.hint) from error
        made = file.read(path)
        gpu = named_gpu(made.gpu) if self.gpu is None else self.gpu
        return build(made, build_gpu(gpu, self.host, context), self.script)

    def runs_on(self, context: Context) -> GpuSpec:  # noqa: ARG002 - the script says it, no file
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return named_gpu(self.profile_for) if self.gpu is None else self.gpu

    def issued_by(self) -> HostSpec | None:
        """See :class:`~cosim.workload.contract.WorkloadSpec`."""
        return self.host
