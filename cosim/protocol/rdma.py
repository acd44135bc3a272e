"""``{model: ns3_rdma, control: dcqcn, ...}``: RDMA in ns-3, packet by packet.

Settings and controls are those of the ``congestion`` network: the same text with another name of the model.

A control of your own runs there, too. Where its ``kernel`` is a C file the server loads it, else it asks
this process (:mod:`cosim.protocol.own_control`): at the end of each round trip of a connection, as the
``congestion`` network does, or after the ``wait`` that was given, and at once after a timeout. What a control
is told is measured on packets. ``rtt`` is that of the acknowledgement that ended the round, ``marked`` the
share of the round's acknowledgements, ``lost`` the number of losses that the receiver told of. ``delivered``
is ``acked``; ``job`` and ``granted`` are 0.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, field_validator, model_validator

from cosim.context import Context
from cosim.network.congestion.contract import Control
from cosim.network.congestion.controls.dcqcn import Dcqcn
from cosim.network.congestion.controls.dctcp import Dctcp
from cosim.network.congestion.controls.fixed import Fixed
from cosim.network.congestion.controls.hpcc import Hpcc
from cosim.network.congestion.controls.nscc import Nscc
from cosim.network.congestion.controls.swift import Swift
from cosim.network.congestion.controls.timely import Timely
from cosim.network.contract import NetworkSpec
from cosim.network.simulator import NetworkSimulator
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.own_control import OwnControl
from cosim.protocol.remote import LinkFailure, check_failures, never_back
from cosim.protocol.settings import FailurePolicy, RoutingName, SessionSettings, Target
from cosim.registry import Named, name_of
from cosim.spec import SizeBytes, TimePs
from cosim.topology.graph import Topology

_NAMES: dict[type[Control], str] = {
    Dcqcn: "dcqcn",
    Dctcp: "dctcp",
    Fixed: "fixed",
    Hpcc: "hpcc",
    Nscc: "nscc",
    Swift: "swift",
    Timely: "timely",
}
_OWN = "own"
"""What the adapter calls a control that it loads."""
_NOT_READ = {"preset"}
"""Fields of controls that only choose the defaults of others."""
_BALANCING = {"flowlet": "flowlet", "spray": "random", "adaptive": "adaptive"}
"""Routings that switches choose as packets come, as the adapter calls them."""
_BY_PACKET = ("spray", "adaptive")
_FAST_FORWARD = r"^(exact|(\d+(\.\d*)?|\.\d+) ?%)$"


class Ns3Rdma(NetworkSpec):
    """RDMA in ns-3: queue pairs, switches with shared buffers, PFC and ECN, packet by packet"""

    balancing: ClassVar[str] = "its switches choose paths by routing: ecmp, flowlet, spray or adaptive"

    control: Annotated[Control, Named("cosim.controls")] = Field(
        description="what decides how fast to send: dcqcn, dctcp, fixed, hpcc, nscc, swift, timely, "
        "mltcp over one, or your own"
    )
    mtu: SizeBytes = Field(
        9000, ge=576, le=65000, description="largest packet, headers of RoCEv2 included (44 bytes)"
    )
    buffer: SizeBytes | None = Field(
        None,
        gt=0,
        description="room for each port; omitted: 256 packets, at least 4 x where all is marked",
    )
    shared_buffer: bool = Field(
        True, description="a switch's ports share their room; false: each has its own"
    )
    alpha: float | None = Field(
        None,
        gt=0,
        description="a queue (with PFC: what came in over one link) may have this times the free room; "
        "omitted: 1, with PFC 1/8",
    )
    ecn_min: SizeBytes | None = Field(
        None, ge=0, description="queue from which packets are marked; omitted: as the control's paper has it"
    )
    ecn_max: SizeBytes | None = Field(None, ge=0, description="queue from which all are; omitted: ecn_min")
    ecn_probability: float | None = Field(None, gt=0, le=1, description="marked at ecn_max; omitted: 1")
    pfc: Literal["auto"] | bool = Field(
        "auto", description="stop links instead of dropping; auto: as the control's paper has it"
    )
    pfc_threshold: SizeBytes | None = Field(
        None,
        gt=0,
        description="bytes of one link in a switch from which that link is stopped; omitted: by alpha, "
        "or half the port's own room",
    )
    headroom: SizeBytes | None = Field(
        None,
        gt=0,
        description="room for what comes after that, for each link; omitted: what its rate and length need",
    )
    trimming: Literal["auto"] | bool = Field(
        "auto",
        description="cut packets without room down to their headers; auto: as the control's paper has it",
    )
    retransmission: Literal["auto", "go_back_n", "selective"] = Field(
        "auto", description="what is sent again after a loss; auto: selective where nothing pauses, or spray"
    )
    rto: TimePs | None = Field(
        None, gt=0, description="least retransmission timeout; omitted: 500 us, with PFC 67 ms (InfiniBand's)"
    )
    routing: Literal["auto", "given", "ecmp", "flowlet", "spray", "adaptive"] = Field(
        "auto",
        description="given: the topology's own paths; else switches pick among the shortest: ecmp once, "
        "flowlet after each pause, spray for each packet, adaptive the shortest queue for each packet",
    )
    routing_seed: int = Field(0, ge=0, description="of the switches' own picks")
    flowlet_gap: TimePs | None = Field(
        None, ge=0, description="pause after which a flowlet may take another way; omitted: 50 us"
    )
    delivery: Literal["auto", "in_order", "out_of_order"] = Field(
        "auto",
        description="whether a packet that comes before its turn says that others were lost; auto: in_order, "
        "with trimming, spray and adaptive out_of_order",
    )
    failures: tuple[LinkFailure, ...] = Field((), description="links and nodes that fail and come back")
    fast_forward: Annotated[str, Field(pattern=_FAST_FORWARD)] | None = Field(
        None,
        description="exact: what happened before in the same state is recalled instead of simulated; a share "
        "as 1%: states that differ by less count as the same, and settled rates are extended",
    )
    recover: bool = Field(True, description="restart a server that dies, and bring it back to where it was")

    @field_validator("control")
    @classmethod
    def _has_packets(cls, control: Control) -> Control:
        inner = control.inner()
        name = type(inner).__name__
        if type(inner) in _NAMES:
            return control
        if name_of("cosim.controls", type(inner)) is not None:
            raise ValueError(
                f"{name} is no control of RDMA; there are {', '.join(_NAMES.values())}, mltcp over them, and "
                "your own\n"
                "  TCP's are transports of network: ns3"
            )
        if inner is not control:
            raise ValueError(f"mltcp over {name}: in packets mltcp scales {', '.join(_NAMES.values())} alone")
        if inner.credits:
            raise ValueError(f"{name}.credits: receivers grant no credit in packets")
        return control

    @model_validator(mode="after")
    def _thresholds(self) -> Ns3Rdma:
        if self.ecn_min is not None and self.ecn_max is not None and self.ecn_max < self.ecn_min:
            raise ValueError("ecn_max is below ecn_min")
        if self.trims and self.delivery == "in_order":
            raise ValueError(
                "with trimming each loss is told by its own header, so that a gap is none: say delivery: "
                "out_of_order, or trimming: false"
            )
        if self.out_of_order and self.retransmission == "go_back_n":
            raise ValueError(
                "go_back_n throws away what comes out of order: say selective, or delivery: in_order"
            )
        if self.routing in _BY_PACKET and self.control.inner().telemetry:
            raise ValueError(
                f"{_named(self.control.inner())} compares telemetry with that of the packet before, "
                f"which takes another way with {self.routing}: say flowlet, ecmp or given"
            )
        if self.fast_forward is not None and self.control.inner() is not self.control:
            raise ValueError(
                "fast_forward doesn't remember how far a job's iteration has come, which MLTCP goes by"
            )
        if self.fast_forward is not None and type(self.control.inner()) not in _NAMES:
            raise ValueError(f"fast_forward can't remember what {_named(self.control)} keeps for itself")
        if self.fast_forward is not None and self.routing in _BALANCING:
            raise ValueError(
                f"fast_forward needs one path for each queue pair: given or ecmp, not {self.routing}"
            )
        return self

    @property
    def lossless(self) -> bool:
        """Whether links are stopped instead of dropping."""
        return self.control.inner().lossless if self.pfc == "auto" else self.pfc

    @property
    def trims(self) -> bool:
        """Whether packets are cut instead of dropped."""
        return self.control.inner().trims if self.trimming == "auto" else self.trimming

    @property
    def out_of_order(self) -> bool:
        """Whether a gap is no loss."""
        if self.delivery == "auto":
            return self.trims or self.routing in _BY_PACKET
        return self.delivery == "out_of_order"

    def shares_links(self) -> bool:
        """ns-3 sends packets."""
        return True

    def shares_by_weight(self) -> bool:
        """The control says."""
        return self.control.inner().uses_weight

    def shares_by_priority(self) -> bool:
        """Ports serve higher classes first."""
        return True

    def uses_seed(self) -> bool:
        """Marks between two thresholds are drawn, and so is spray."""
        inner = self.control.inner()
        drawn = isinstance(inner, (Dcqcn, Nscc)) or type(inner) not in _NAMES or bool(self.ecn_max)
        return drawn or self.routing in _BALANCING

    def check_topology(self, topology: Topology) -> None:
        """What fails has to be there. See :class:`~cosim.network.contract.NetworkSpec`."""
        check_failures(self.failures, topology)

    def why_stalled(self, topology: Topology) -> list[str]:
        """Links and nodes that fail and never come back."""
        return never_back(self.failures, topology)

    def idle_settings(self) -> list[tuple[str, str]]:
        """Thresholds of what is off, and marks that the control doesn't look at."""
        inner = self.control.inner()
        found = []
        if inner is not self.control and not inner.grows:
            found.append(("control", "MLTCP scales growth, and what it is over doesn't grow"))
        if not self.lossless:
            names = [n for n in ("pfc_threshold", "headroom") if getattr(self, n) is not None]
            found += [(name, "nothing is paused: pfc is off") for name in names]
        if self.lossless and self.trimming is True:
            found.append(("trimming", "nothing is dropped: pfc is on"))
        if self.lossless and self.alpha is not None and (self.pfc_threshold or not self.shared_buffer):
            found.append(("alpha", "links are stopped at a fixed threshold"))
        if not self.lossless and self.alpha is not None and not self.shared_buffer:
            found.append(("alpha", "each port has its own room"))
        given = [n for n in ("ecn_min", "ecn_max", "ecn_probability") if getattr(self, n) is not None]
        if not inner.uses_marks:
            found += [(name, f"{_named(inner)} doesn't look at marks") for name in given]
        elif self.ecn_min is None:
            found += [(name, "the control's own marking holds without ecn_min") for name in given]
        elif self.ecn_probability is not None and self.ecn_max in (None, self.ecn_min):
            found.append(("ecn_probability", "between ecn_min and ecn_max there is nothing"))
        if self.flowlet_gap is not None and self.routing != "flowlet":
            found.append(("flowlet_gap", f"routing is {self.routing}, not flowlet"))
        if self.delivery == "out_of_order" and self.routing not in _BALANCING and not self.trims:
            found.append(("delivery", "all packets of a queue pair take one way"))
        if self.routing_seed and self.routing in ("auto", "given"):
            found.append(("routing_seed", "the paths are the topology's own"))
        return found

    def simulator_build(self) -> str:
        """The adapter's."""
        return adapters.executable("ns3_rdma").parent.name

    def build(self, context: Context) -> NetworkSimulator:  # noqa: ARG002 - nothing of it matters
        """A session yet to be opened; the adapter is built here, if it is not yet.

        Raises
        ------
        LaunchError
            The adapter can't be built: names what is missing.
        InputError
            A control of your own doesn't compile, with the compiler's first error.
        """
        command = adapters.command("ns3_rdma", lambda text: print(text, file=sys.stderr))
        inner, policy = self.control.inner(), FailurePolicy(recover=self.recover)
        if type(inner) in _NAMES:
            return RemoteNetwork(Target(command=tuple(command), name="ns3_rdma"), self.settings(), policy)
        return OwnControl(command, self.settings(), policy, inner, self.mtu, "ns3_rdma")

    def settings(self) -> SessionSettings:
        """What the session asks for."""
        marks = self.ecn_min is not None
        inner = self.control.inner()
        return SessionSettings(
            queue_discipline="shared_buffer" if self.shared_buffer else "port_buffer",
            queue_bytes=self.buffer or 0,
            mark_min_bytes=self.ecn_min,
            mark_max_bytes=self.ecn_max if marks else None,
            transport=_NAMES.get(type(inner), _OWN),
            mtu_bytes=self.mtu,
            mltcp=inner is not self.control,
            routing=cast("RoutingName", "spray" if self.routing in _BALANCING else self.routing),
            routing_seed=self.routing_seed,
            link_events=[event for failure in self.failures for event in failure.events()],
            options={key: _text(value) for key, value in self._options(inner).items() if value is not None},
        )

    def _options(self, inner: Control) -> dict[str, Any]:
        """The adapter's own settings, and every parameter of the control."""
        slope, intercept = self.control.scaling()
        scaled = inner is not self.control
        return {
            "alpha": self.alpha,
            "pfc": "on" if self.lossless else "off",
            "pfc_threshold_bytes": self.pfc_threshold,
            "headroom_bytes": self.headroom,
            "trimming": "on" if self.trims else "off",
            "ecn_probability": self.ecn_probability if self.ecn_min is not None else None,
            "retransmission": None if self.retransmission == "auto" else self.retransmission,
            "rto_ps": self.rto,
            "balancing": _BALANCING.get(self.routing),
            "flowlet_gap_ps": self.flowlet_gap if self.routing == "flowlet" else None,
            "fast_forward": _tolerance(self.fast_forward),
            "delivery": None if self.delivery == "auto" else self.delivery,
            "mltcp_slope": slope if scaled else None,
            "mltcp_intercept": intercept if scaled else None,
            **_parameters(inner),
        }


def _named(control: Control) -> str:
    return _NAMES.get(type(control)) or type(control).__name__


def _parameters(inner: Control) -> dict[str, Any]:
    """A control's own, by its name."""
    if name := _NAMES.get(type(inner)):
        fields = type(inner).model_fields
        return {f"{name}.{key}": getattr(inner, key) for key in fields if key not in _NOT_READ}
    return {}


def _tolerance(fast_forward: str | None) -> str | None:
    """As the adapter reads it: a share."""
    if fast_forward is None or fast_forward == "exact":
        return fast_forward
    return str(float(fast_forward.rstrip("% ")) / 100)


def _text(value: Any) -> str:
    """As the adapter reads it."""
    return str(int(value)) if isinstance(value, bool) else str(value)
