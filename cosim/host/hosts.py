"""A host: what its processor takes, under a framework, to keep a GPU busy.

None of this is a property of the GPU. An operator of an eager framework passes the interpreter, the
dispatcher, autograd and the driver before its kernel is in the GPU's queue; where that takes longer than
kernels do, an iteration takes what the host takes. Processors and frameworks of a year differ by several
times in it, as do training and decoding on the same machine.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from cosim.context import Context
from cosim.errors import WorkloadError
from cosim.files import located_yaml
from cosim.host.contract import HostSpec
from cosim.spec import TimePs


class Host(HostSpec):
    """A host of your own: what it takes to issue an operator, between kernels, for an iteration."""

    name: str = Field(default="custom", description="what reports call it")
    source: str = Field(default="the scenario", description="where the numbers are from")
    operator_time: TimePs = Field(
        ge=0, le=200_000_000, description="to issue one operator; 0s: it is never waited for"
    )
    gap_time: TimePs = Field(
        0,
        ge=0,
        le=50_000_000,
        description="that the GPU idles between two kernels in its queue, beside what each takes alone",
    )
    step_time: TimePs = Field(
        0,
        ge=0,
        le=200_000_000_000,
        description="for an iteration, beside its operators (logs, loss scaling)",
    )
    fitted: dict[str, str] = Field(default={}, description="numbers that were fitted, and to what")

    @model_validator(mode="after")
    def _are_fitted(self) -> Host:
        numbers = {name for name in Host.model_fields if name.endswith("_time")}
        unknown = sorted(set(self.fitted) - numbers)
        if unknown:
            raise ValueError(f"fitted: a host has no number {unknown[0]}")
        return self

    def build(self, context: Context) -> Host:  # noqa: ARG002 - nothing is read
        """The host itself."""
        return self

    def about(self) -> str:
        """Where its numbers are from, and how many were fitted."""
        return f"{self.source}; fitted numbers: {len(self.fitted)}"


class HostTable(HostSpec):
    """A host in a file of your own, of the form that the catalogue's have."""

    path: str = Field(description="file with `host: {operator_time: 20us, ...}`, relative to the scenario")

    def build(self, context: Context) -> Host:
        """The host in the file.

        Raises
        ------
        WorkloadError
            No file, or not such a table.
        """
        table = located_yaml.read(context.base / self.path, WorkloadError)
        return located_yaml.as_model(table, Host, WorkloadError, "host")
