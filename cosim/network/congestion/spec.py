"""What a scenario says of the congestion network: ``{model: congestion, control: dctcp, ...}``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from cosim.network.congestion.control import Control
from cosim.network.congestion.plugin import plugged_in
from cosim.network.simulator import NetworkSimulator
from cosim.registry import Named
from cosim.spec import SizeBytes, Spec, TimePs

AnyControl = Annotated[Any, Named("cosim.controls", also=(Control,)), BeforeValidator(plugged_in)]


class Congestion(Spec):
    """Fluid flows under congestion control: queues, ECN marks, drops or PFC, controls as plug-ins"""

    takes_base: ClassVar[bool] = True
    shares_by_priority: ClassVar[bool] = True

    control: AnyControl = Field(
        description="what decides how fast to send; or {plugin: FILE.py:CLASS, its fields}"
    )
    mtu: SizeBytes = Field(9000, ge=64, description="bytes in a packet")
    buffer: SizeBytes | None = Field(
        None,
        gt=0,
        description="room in a port's queue; omitted: 256 packets, at least 4 x where all is marked",
    )
    ecn_min: SizeBytes | None = Field(
        None, ge=0, description="queue from which packets are marked; omitted: as the control's paper has it"
    )
    ecn_max: SizeBytes | None = Field(None, ge=0, description="queue from which all are; omitted: ecn_min")
    ecn_probability: float | None = Field(None, gt=0, le=1, description="marked at ecn_max; omitted: 1")
    pfc: Literal["auto"] | bool = Field(
        "auto", description="pause upstream ports instead of dropping; auto: as the control's paper has it"
    )
    pfc_threshold: SizeBytes | None = Field(
        None, gt=0, description="queue from which a port pauses others; omitted: half the buffer"
    )
    rto: TimePs = Field(
        500_000_000,
        gt=0,
        description="least timeout, where packets sent again were lost again",
    )
    rest: bool = Field(
        True, description="leave out updates that change nothing; the same results without, only slower"
    )

    @model_validator(mode="after")
    def _thresholds(self) -> Congestion:
        if self.ecn_min is not None and self.ecn_max is not None and self.ecn_max < self.ecn_min:
            raise ValueError("ecn_max is below ecn_min")
        return self

    @property
    def shares_by_weight(self) -> bool:
        """Whether weights of jobs matter: the control says."""
        return bool(self.control.inner().uses_weight)

    @property
    def uses_seed(self) -> bool:
        """Whether the control draws lots."""
        return bool(self.control.inner().uses_chance)

    def idle_settings(self) -> list[tuple[str, str]]:
        """Thresholds of what is off."""
        found = []
        if self.control.inner() is not self.control and not self.control.inner().grows:
            found.append(("control", "MLTCP scales growth, and what it is over doesn't grow"))
        lossless = self.control.inner().lossless if self.pfc == "auto" else self.pfc
        if lossless and "rto" in self.model_fields_set:
            found.append(("rto", "nothing is dropped: pfc is on"))
        if self.pfc_threshold is not None and not lossless:
            found.append(("pfc_threshold", "nothing is paused: pfc is off"))
        if self.ecn_min is None:
            names = [n for n in ("ecn_max", "ecn_probability") if getattr(self, n) is not None]
            found += [(name, "the control's own marking holds without ecn_min") for name in names]
        if (
            self.ecn_probability is not None
            and self.ecn_min is not None
            and self.ecn_max in (None, self.ecn_min)
        ):
            found.append(("ecn_probability", "between ecn_min and ecn_max there is nothing"))
        return found

    def build(self, base: Path = Path()) -> NetworkSimulator:
        """A fresh network; ``base`` is where a plug-in's file is looked for.

        Raises
        ------
        InputError
            A plug-in that can't be loaded, or has no such field.
        """
        from cosim.network.congestion.network import CongestionNetwork, Ports

        return CongestionNetwork(
            self.control.load(base),
            Ports(
                mtu_bytes=self.mtu,
                buffer_bytes=self.buffer,
                mark_from_bytes=self.ecn_min,
                mark_all_bytes=self.ecn_max,
                mark_probability=self.ecn_probability,
                lossless=None if self.pfc == "auto" else self.pfc,
                pause_bytes=self.pfc_threshold,
                least_rto_ps=self.rto,
                rest=self.rest,
            ),
        )
