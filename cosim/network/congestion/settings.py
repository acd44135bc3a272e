"""What a scenario says of the congestion network: ``{model: congestion, control: dctcp, ...}``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from cosim.context import Context
from cosim.doubts import Doubt
from cosim.network.balancing.named import BalancerName, balancer_field, check_balancer
from cosim.network.congestion.contract import Control
from cosim.network.congestion.credits import Credits
from cosim.network.contract import NetworkSpec
from cosim.network.simulator import NetworkSimulator
from cosim.registry import Named
from cosim.spec import RateBps, SizeBytes, TimePs
from cosim.topology.graph import Topology
from cosim.units import format_size


def _parse_share(value: object) -> object:
    """``1%`` and ``0.01`` are the same."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.endswith("%"):
        raise ValueError(f"{value!r} is neither exact nor a share, such as 1%")
    try:
        return float(text[:-1]) / 100
    except ValueError:
        raise ValueError(f"{value!r} is neither exact nor a share, such as 1%") from None


Share = Annotated[float, BeforeValidator(_parse_share), Field(ge=0.001, le=0.1)]
"""A part of something, which may be written in per cent."""


class Congestion(NetworkSpec):
    """Fluid flows under congestion control: queues, ECN marks, drops or PFC, controls as plug-ins"""

    control: Annotated[Control, Named("cosim.controls")] = Field(description="what decides how fast to send")
    mtu: SizeBytes = Field(9000, ge=64, description="bytes in a packet")
    headers: bool = Field(
        True,
        description="packets have headers, and telemetry where the control has some; without, links carry "
        "messages alone, as those of fair_share do",
    )
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
    queues_at: RateBps | None = Field(
        None,
        gt=0,
        description="rate of links with queues (buffer, ecn_min, ecn_max, pfc_threshold) as given; others "
        "have them in proportion; omitted: all alike",
    )
    pfc: Literal["auto"] | bool = Field(
        "auto", description="pause upstream ports instead of dropping; auto: as the control's paper has it"
    )
    pfc_threshold: SizeBytes | None = Field(
        None,
        gt=0,
        description="bytes of one link in a port's queue from which that link is paused; omitted: half the "
        "buffer",
    )
    flow_control: Credits | None = Field(
        None,
        description="links that send what the other end has room for (kind: credits), in place of pfc; "
        "omitted: pfc, or drops",
    )
    trimming: Literal["auto"] | bool = Field(
        "auto",
        description="cut packets without room down to their headers; auto: as the control's paper has it",
    )
    rto: TimePs = Field(
        500_000_000,
        gt=0,
        description="least timeout, where packets sent again were lost again",
    )
    balancer: BalancerName = balancer_field()
    accuracy: Literal["exact"] | Share = Field(
        "exact",
        description="how far times may be off where several rounds are taken at once, as `1%`; exact: every "
        "round is computed",
    )
    rest: bool = Field(
        True,
        description="leave out updates that change nothing; without, slower, and the same to the picosecond",
    )

    @model_validator(mode="after")
    def _thresholds(self) -> Congestion:
        if self.ecn_min is not None and self.ecn_max is not None and self.ecn_max < self.ecn_min:
            raise ValueError("ecn_max is below ecn_min")
        if self.flow_control is not None and self.pfc is True:
            raise ValueError("flow_control and pfc both say when a link stands still: take one of them")
        if self.flow_control is not None:
            from cosim.network.congestion.fabric import PortSettings, packet_bytes

            ports = PortSettings(mtu_bytes=self.mtu, headers=self.headers)
            self.flow_control.check_packet(packet_bytes(self.control.inner(), ports)[1])
        return self

    def shares_links(self) -> bool:
        """Packets take their time on each link."""
        return True

    def shares_by_weight(self) -> bool:
        """The control says."""
        return self.control.inner().uses_weight

    def shares_by_priority(self) -> bool:
        """Ports serve higher classes first."""
        return True

    def uses_seed(self) -> bool:
        """Where the control or the balancer draws lots."""
        return self.control.uses_seed() or self.balancer.uses_seed()

    def chooses_paths(self) -> bool:
        """Where the balancer does."""
        return self.balancer.chooses

    def doubts(self) -> list[Doubt]:
        """Packets that overtake each other under a transport that then goes back."""
        inner = type(self.control.inner())
        if not self.balancer.reorders or inner.reordering != "go-back-N":
            return []
        what = f"{inner.__name__}'s transport sends again all after a gap (go-back-N), which is not modelled"
        why = f"packets of a message overtake each other, where {what}"
        return [
            Doubt(
                "balancer", why, "a balancer that keeps packets in order, or a control with selective repeat"
            )
        ]

    def check_topology(self, topology: Topology) -> None:
        """Refuse what leaves the balancer no choice. See :class:`NetworkSpec`."""
        check_balancer(self.balancer, topology)

    def idle_settings(self) -> list[tuple[str, str]]:
        """Thresholds of what is off."""
        found = []
        if self.control.inner() is not self.control and not self.control.inner().grows:
            found.append(("control", "MLTCP scales growth, and what it is over doesn't grow"))
        lossless = self.control.inner().lossless if self.pfc == "auto" else self.pfc
        if self.flow_control is not None:
            lossless = True
            idle = {"buffer", "pfc", "pfc_threshold", "rto", "trimming"} & self.model_fields_set
            found += [(name, "links have credits: nothing is dropped") for name in sorted(idle)]
            found += [(f"flow_control.{name}", why) for name, why in self.flow_control.idle_settings()]
        elif lossless and "rto" in self.model_fields_set:
            found.append(("rto", "nothing is dropped: pfc is on"))
        elif self.pfc_threshold is not None and not lossless:
            found.append(("pfc_threshold", "nothing is paused: pfc is off"))
        found += self._idle_marks(lossless=lossless)
        if self.queues_at is not None and {self.buffer, self.ecn_min, self.pfc_threshold} == {None}:
            found.append(("queues_at", "neither buffer nor ecn_min nor pfc_threshold is given"))
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

    def _idle_marks(self, *, lossless: bool) -> list[tuple[str, str]]:
        """Marks that nobody looks at, or that no queue is long enough for."""
        given = [n for n in ("ecn_min", "ecn_max", "ecn_probability") if getattr(self, n) is not None]
        control = type(self.control.inner())
        if not control.uses_marks and not self.balancer.needs_queues:
            return [(name, f"{control.__name__} does not look at marks") for name in given]
        if lossless or self.buffer is None or (self.ecn_min or 0) < self.buffer:
            return []
        why = f"the buffer of {format_size(self.buffer)} is full before a packet is marked"
        return [(name, why) for name in given]

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A fresh network."""
        from cosim.network.congestion.fabric import PortSettings
        from cosim.network.congestion.network import CongestionNetwork

        return CongestionNetwork(
            self.control,
            PortSettings(
                mtu_bytes=self.mtu,
                headers=self.headers,
                credits=self.flow_control,
                buffer_bytes=self.buffer,
                mark_from_bytes=self.ecn_min,
                mark_all_bytes=self.ecn_max,
                mark_probability=self.ecn_probability,
                lossless=None if self.pfc == "auto" else self.pfc,
                trims=None if self.trimming == "auto" else self.trimming,
                pause_bytes=self.pfc_threshold,
                queues_at_bps=self.queues_at,
                least_rto_ps=self.rto,
                rest=self.rest,
                tolerance=0.0 if self.accuracy == "exact" else self.accuracy,
            ),
            self.balancer,
        )
