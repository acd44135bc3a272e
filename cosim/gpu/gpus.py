"""What is known of a GPU: peak arithmetic and memory rate from a data sheet, and what it reaches of them.

Peaks are dense (without structured sparsity), in FLOP/s with a multiply-add counted as two; matrix units
where a type has them. What a GPU reaches of its peaks are its ``efficiency``'s parameters; what its kernels
wait for in front of the GPU are its ``host``'s, which is another's in another machine. The catalogue's
GPUs are files of the same form that `cosim calibrate` and `cosim fit` write (:mod:`cosim.gpu.catalogue`).
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, PositiveInt, field_validator, model_validator

from cosim.answers import check_answer
from cosim.context import Context
from cosim.doubts import Doubt
from cosim.errors import WorkloadError
from cosim.files import located_yaml
from cosim.gpu.contract import GpuSpec
from cosim.gpu.efficiency import OUTSIDE, Calibration, Efficiency
from cosim.host import catalogue as hosts
from cosim.host.contract import HostSpec
from cosim.host.hosts import Host
from cosim.registry import Named
from cosim.spec import RateBps, SizeBytes

if TYPE_CHECKING:
    from cosim.gpu.job_clock import Busy
    from cosim.gpu.timer import GpuTimer

DType = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8"]

PeakType = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4"]
"""Types that a GPU may have matrix units for; in fp4 nothing is kept, products' operands are converted."""

DTYPE_BYTES: dict[DType, int] = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes of one number in memory."""


_NEIGHBOUR, _UNCALIBRATED = 0.12, 0.25
"""One sigma of a GPU with a measured one's efficiencies, and of one that nothing is known of: what H100's
jobs were off by with an A100's numbers."""
_DECODE = 0.05
"""One sigma of a decode step's error: vLLM's 43 measured ones (``python -m tests.lab.validation.decode``)."""
_DECODED = ("H100-SXM5", "A100-SXM4-40GB", "RTX-4090", "RTX-PRO-6000")
"""GPUs that those ran on."""


def _numbers(host: HostSpec) -> Host:
    if not isinstance(host, Host):
        raise ValueError(
            f"a GPU's own host is named, or its numbers given: {{kind: custom, operator_time: 10us}}; a "
            f"{type(host).__name__} is a job's, beside its `gpu`"
        )
    return host


_Flops = Annotated[float, Field(ge=1e6, le=1e20, allow_inf_nan=False)]
_Watts = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Gpu(GpuSpec):
    """A GPU of your own: peak FLOP/s by number type, and memory rate."""

    name: str = Field(default="custom", description="what reports call it")
    peak_flops: dict[PeakType, _Flops] = Field(description="dense FLOP/s by number type, {bf16: 312e12}")
    memory_rate: RateBps = Field(description="of the GPU's own memory")
    memory: SizeBytes | None = Field(
        default=None, description="size of the GPU's own memory; omitted: nobody asks whether a job fits"
    )
    cache: SizeBytes | None = Field(
        default=None, description="size of its last-level (L2) cache; omitted: products' operands fit in it"
    )
    multiprocessors: PositiveInt = Field(default=108, description="streaming multiprocessors, compute units")
    fp8_turned: bool = Field(
        default=True,
        description="products of FP8 want operands turned round, as Hopper's do, so that both ways are kept",
    )
    link_rate: RateBps | None = Field(
        default=None, description="of the GPU to its peers, one way; omitted: unknown"
    )
    power: _Watts | None = Field(
        default=None, description="watts at most, by its data sheet: what limits a neighbour's clock, too"
    )
    source: str = Field(default="the scenario", description="where the numbers are from")
    like: str | None = Field(
        default=None,
        description="GPU of the catalogue whose efficiency and host it is taken to have, what is given apart",
    )
    host: Annotated[Host, Named("cosim.hosts"), AfterValidator(_numbers)] = Field(
        default_factory=lambda: hosts.read("unknown"),
        description="what its measured jobs ran on; a job's own `host` goes before it",
    )
    efficiency: Efficiency = Field(
        default=Efficiency(), description="what it reaches of its peaks; the compute model's parameters"
    )
    calibration: Calibration | None = Field(
        default=None, description="what the efficiency was fitted to; omitted: nothing, it is uncalibrated"
    )

    fitted: dict[str, str] = Field(
        default={}, description="numbers of the efficiency that were fitted, and to what"
    )

    @model_validator(mode="before")
    @classmethod
    def _as_its_neighbour(cls, value: Any) -> Any:
        """What host and efficiency don't say is the neighbour's, as far as the power goes."""
        if not isinstance(value, dict) or not value.get("like"):
            return value
        from cosim.gpu.catalogue import read

        other = read(str(value["like"]))
        value = {"host": other.host, **value}
        given = value.get("efficiency", {})
        if not isinstance(given, dict):
            return value
        from cosim.gpu.neighbour import reached  # which asks this module

        return {
            "fp8_turned": other.fp8_turned,
            **value,
            "efficiency": {**other.efficiency.written(), **reached(value, given, other)},
        }

    @model_validator(mode="after")
    def _are_fitted(self) -> Gpu:
        unknown = sorted(set(self.fitted) - set(Efficiency.model_fields))
        if unknown:
            raise ValueError(f"fitted: efficiency has no {unknown[0]}")
        if self.efficiency.arithmetic_power is not None and self.power is None:
            raise ValueError("efficiency.arithmetic_power needs the GPU's own `power`, in watts: its limit")
        return self

    @field_validator("peak_flops")
    @classmethod
    def _some(cls, value: dict[PeakType, float]) -> dict[PeakType, float]:
        if not value:
            raise ValueError("needs at least one number type, as in {bf16: 312e12}")
        return value

    def build(self, context: Context) -> Gpu:  # noqa: ARG002 - nothing is read
        """The GPU itself."""
        return self

    def on(self, host: Host) -> Gpu:
        """The same GPU in another machine, which its source says."""
        source = f"{self.source}; issued by {host.name}: {host.source}"
        return self.model_copy(update={"host": host, "source": source})

    def clocked(self, busy: Busy) -> Gpu:
        """At the clock that its power leaves a job; itself where a clock is known, but no power.

        ``busy``: picoseconds of each of the job's programs on a GPU.
        """
        from cosim.gpu.job_clock import clocked  # which asks this module

        return clocked(self, busy)

    def timer(self, dtype: DType) -> GpuTimer:
        """What times kernels of a number type on it."""
        from cosim.gpu.timer import GpuTimer  # which asks this module

        return GpuTimer(self, dtype)

    def about(self) -> str:
        """Its name, where its numbers are from, and how many were fitted."""
        return f"{self.name}, {self.source}; fitted numbers: {len(self.fitted)}"

    def peak(self, dtype: PeakType) -> float:
        """Dense FLOP/s.

        Raises
        ------
        ValueError
            No peak known for the type.
        """
        if dtype not in self.peak_flops:
            raise ValueError(f"{self.name} has no {dtype}; it has {', '.join(sorted(self.peak_flops))}")
        return self.peak_flops[dtype]

    def trust(self, dtype: DType, *, experts: bool = False, framework: str | None = None) -> str:
        """How far the compute model can be trusted for such a job (:meth:`error`), for a report's reader."""
        known = self.calibration
        if known is None:
            if self.like is None:
                return "uncalibrated: the efficiencies are another GPU's"
            own = "what its kernels weren't measured for is" if self.fitted else "the efficiencies are"
            return f"uncalibrated by trainings: {own} as on {self.like}"
        if dtype not in known.dtypes:
            return f"uncalibrated for {dtype} (calibrated for {', '.join(known.dtypes)} on {known.source})"
        said = f"calibrated on {known.source}: error {known.uncertainty:.0%}, one sigma"
        sigma = hypot(*self.error(dtype, experts=experts, framework=framework))
        if f"{sigma:.0%}" == f"{known.uncertainty:.0%}":
            return said
        unlike = "jobs with experts" if experts and known.experts else "jobs of another framework"
        return f"{said}, {sigma:.0%} for {unlike}"

    def doubts(self, dtype: DType) -> tuple[Doubt, ...]:
        """Where it was calibrated, and not in this number type: its error is of others."""
        if self.calibration is None or dtype in self.calibration.dtypes:
            return ()
        instead = (
            f"one of {', '.join(self.calibration.dtypes)}, or a GPU that `cosim calibrate` measures in it"
        )
        return (Doubt(f"computation on {self.name}", self.trust(dtype), instead),)

    def error(
        self, dtype: DType, *, experts: bool = False, framework: str | None = None
    ) -> tuple[float, float]:
        """Relative error of an iteration time, one sigma: common to jobs of this GPU, and a job's own.

        A number type or a ``framework`` that wasn't measured has more, and so has a GPU that is no neighbour
        of a measured one; jobs with ``experts`` what those that were measured are off by.
        """
        known = self.calibration
        if known is None:
            sigma, common = (_NEIGHBOUR if self.like else _UNCALIBRATED), 0.9
        else:
            sigma, common = known.uncertainty, known.common
            if experts and known.experts is not None:
                sigma = known.experts
            elif framework is not None and known.framework not in (None, framework):
                sigma = hypot(sigma, OUTSIDE)
            if dtype not in known.dtypes:
                sigma = max(sigma, _NEIGHBOUR)
        return sigma * common, sigma * (1 - common * common) ** 0.5

    def decode_error(self, dtype: DType) -> tuple[float, float]:
        """Relative error of a decode step, one sigma, as :meth:`error` has it; a training's beside it on a
        GPU that no measured step ran on.
        """
        common, own = (0.0, 0.0) if self.name in _DECODED else self.error(dtype)
        return common, hypot(own, _DECODE)

    def beside_collectives(self) -> str:
        """What computation is taken to lose beside a collective, for a report's reader."""
        if self.efficiency.interference:
            return f"computation beside a collective takes {self.efficiency.interference:.0%} longer"
        return (
            "computation beside a collective isn't slowed (interference: 0, uncalibrated; measured: "
            "19 % on average, up to 40 %, arXiv 2507.03114)"
        )


def build_gpu(gpu: GpuSpec, host: HostSpec | None, context: Context) -> Gpu:
    """The GPU that a workload names, on the host that it names beside; None: on the GPU's own.

    Raises
    ------
    WorkloadError
        A file that is missing, or says something else.
    InputError
        A plug-in gave something else.
    """
    built = gpu.build(context)
    check_answer(gpu, "build", built, Gpu)
    if host is None:
        return built
    other = host.build(context)
    check_answer(host, "build", other, Host)
    return built.on(other)


class GpuTable(GpuSpec):
    """A GPU as `cosim calibrate` measured it."""

    path: str = Field(description="file that `cosim calibrate` wrote, relative to the scenario")

    def build(self, context: Context) -> Gpu:
        """The GPU in the file.

        Raises
        ------
        WorkloadError
            No file, or not such a table.
        """
        hint = "`cosim calibrate -o FILE` makes one"
        table = located_yaml.read(context.base / self.path, WorkloadError, hint=hint)
        return located_yaml.as_model(table, Gpu, WorkloadError, "gpu")
