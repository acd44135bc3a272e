"""What a scenario says of a simulator elsewhere: ``{simulator: ns3}``, or ``{address: unix:/path}``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.network.contract import NetworkSpec
from cosim.network.simulator import NetworkSimulator
from cosim.protocol import adapters
from cosim.protocol.address import Tls
from cosim.protocol.client import RemoteNetwork
from cosim.protocol.settings import FailurePolicy, LinkEvent, SessionSettings, Target
from cosim.registry import nearest
from cosim.spec import SizeBytes, Spec, TimePs
from cosim.topology.graph import Topology
from cosim.units import format_time


class LinkFailure(Spec):
    """A directed link, or a node, that fails at a time, and may come back at another"""

    link: int | str | None = Field(
        None,
        description="its number, in the topology's order, or its name: 'leaf0 -> spine1' is every link from "
        "one to the other",
    )
    node: str = Field("", description="a node instead: all of its links, both ways")
    down: TimePs = Field(ge=0, description="when it stops working")
    up: TimePs | None = Field(None, description="when it works again; omitted: never")

    @model_validator(mode="after")
    def _one_thing_up_after_down(self) -> LinkFailure:
        if (self.link is None) == (not self.node):
            raise ValueError("a failure is of a link or of a node, one of them")
        if isinstance(self.link, int) and self.link < 0:
            raise ValueError("links are numbered from 0")
        if self.up is not None and self.up <= self.down:
            raise ValueError("a link comes back after it failed, not before")
        return self

    def names(self, topology: Topology) -> list[str]:
        """What fails: ``node spine0``, ``link leaf0 -> spine1``."""
        if self.node:
            return [f"node {self.node}"]
        links = [link for link in self.events()[0].links(topology) if link < topology.num_links]
        return [f"link {name}" for name in dict.fromkeys(topology.link_name(link) for link in links)]

    def events(self) -> list[LinkEvent]:
        """As the protocol has it."""
        link = "" if self.link is None else self.link
        back = [] if self.up is None else [LinkEvent(self.up, link, True, self.node)]
        return [LinkEvent(self.down, link, False, self.node), *back]


def check_failures(failures: tuple[LinkFailure, ...], topology: Topology) -> None:
    """Refuse failures of links and nodes that are not there.

    Raises
    ------
    TopologyError
        Names a near one.
    """
    for failure in failures:
        for link in failure.events()[0].links(topology):
            if link >= topology.num_links:
                raise TopologyError(
                    f"failures: {topology.name} has no link {link}; there are 0 to {topology.num_links - 1}"
                )


def never_back(failures: tuple[LinkFailure, ...], topology: Topology) -> list[str]:
    """What fails for good, and when, for people."""
    return [
        f"the {name} fails at {format_time(one.down)} and never comes back"
        for one in failures
        if one.up is None
        for name in one.names(topology)
    ]


class Certificates(Spec):
    """Files of a TLS connection, needed off this machine; relative to the scenario"""

    roots: Path | None = Field(None, description="certificates to trust")
    certificate: Path | None = Field(None, description="own certificate")
    key: Path | None = Field(None, description="its key")

    def beside(self, folder: Path) -> Tls:
        """With paths that start from ``folder``."""
        roots, certificate, key = (
            None if one is None else folder / one for one in (self.roots, self.certificate, self.key)
        )
        return Tls(roots, certificate, key)


class Remote(NetworkSpec):
    """A network simulator behind gRPC: an adapter by name, a command that serves, or an address.

    What is left out is left to the simulator, which tells what it runs with. It never does with less than
    what is asked for.
    """

    balancing: ClassVar[str] = "a simulator elsewhere chooses paths itself, as its routing says"

    @classmethod
    def _called(cls, data: dict[str, Any]) -> str:
        """See :class:`NetworkSpec`: ``ns3`` is one of these."""
        return str(data.get("simulator") or super()._called(data))

    simulator: str = Field(
        "", description="an adapter that comes with cosim (ns3, astrasim); built when it is first used"
    )
    command: tuple[str, ...] = Field((), description="a program that serves the protocol, and its arguments")
    address: str = Field("", description="of a server that runs: unix:/path or host:port")
    tls: Certificates | None = Field(None, description="needed for an address off this machine")
    transport: str = Field("", description="congestion control; ns3 has cubic, newreno and dctcp")
    mltcp: bool = Field(
        False, description="scale the window's growth by the share of the iteration sent (MLTCP)"
    )
    mtu: SizeBytes = Field(0, ge=0, description="largest packet, network headers included")
    queue: str = Field("", description="queue discipline; ns3 has drop_tail and red")
    queue_size: SizeBytes = Field(0, ge=0, description="room in the queue of each link")
    ecn_min: SizeBytes | None = Field(None, ge=0, description="queue length from which packets are marked")
    ecn_max: SizeBytes | None = Field(
        None, ge=0, description="queue length from which all are; omitted: ecn_min"
    )
    routing: Literal["auto", "given", "ecmp", "spray"] = Field(
        "auto", description="given: the topology's own paths; ecmp and spray: the simulator picks"
    )
    routing_seed: int = Field(0, ge=0, description="of the simulator's own picks")
    failures: tuple[LinkFailure, ...] = Field((), description="links and nodes that fail and come back")
    options: dict[str, Any] = Field({}, description="the simulator's own settings")
    recover: bool = Field(True, description="restart a server that dies, and bring it back to where it was")
    most_deaths: int = Field(
        3, ge=0, description="servers that may die, one after the other, before the run has gone any further"
    )
    budget: TimePs = Field(
        2 * 10**12,
        gt=0,
        description="how long (by the wall's clock) the server may take before it says how far it is",
    )
    answer_timeout: TimePs = Field(
        60 * 10**12, gt=0, description="how long (by the wall's clock) the server may not answer at all"
    )

    @field_validator("simulator")
    @classmethod
    def _known(cls, simulator: str) -> str:
        known = adapters.names()
        if simulator and simulator not in known:
            raise ValueError(
                f"there is no simulator {simulator!r}{nearest(simulator, known)}\n"
                f"  there are: {', '.join(known)}; others by command or address"
            )
        return simulator

    @model_validator(mode="after")
    def _one_server(self) -> Remote:
        if sum(map(bool, (self.simulator, self.command, self.address))) != 1:
            raise ValueError("a simulator elsewhere needs one of simulator, command and address")
        return self

    @property
    def name(self) -> str:
        """The simulator's, where it is one of ours."""
        return self.simulator or super().name

    def shares_links(self) -> bool:
        """Known of ns-3, which sends packets."""
        return self.simulator == "ns3"

    def shares_by_weight(self) -> bool:
        """Not known of a simulator that is not ours."""
        return not self.simulator

    def uses_seed(self) -> bool:
        """Any of them may."""
        return True

    def simulator_build(self) -> str | None:
        """The adapter's; what answers at an address, and what a program of others reads, is not known."""
        return adapters.executable(self.simulator).parent.name if self.simulator else None

    def check_topology(self, topology: Topology) -> None:
        """What fails has to be there. See :class:`~cosim.network.contract.NetworkSpec`."""
        check_failures(self.failures, topology)

    def idle_settings(self) -> list[tuple[str, str]]:
        """See :class:`~cosim.spec.Spec`."""
        found = []
        if self.routing_seed and self.routing in ("auto", "given"):
            found.append(("routing_seed", "the paths are the topology's own"))
        if self.ecn_max is not None and self.ecn_min is None:
            found.append(("ecn_max", "nothing is marked without ecn_min"))
        if "most_deaths" in self.model_fields_set and not self.recover:
            found.append(("most_deaths", "recover is false: the first death ends the run"))
        return found

    def why_stalled(self, topology: Topology) -> list[str]:
        """Links that fail and never come back."""
        return never_back(self.failures, topology)

    def build(self, context: Context) -> NetworkSimulator:
        """A session yet to be opened; the adapter is built here, if it is not yet. Files start from
        ``context.base``.

        Raises
        ------
        LaunchError
            The adapter can't be built: names what is missing.
        """
        command = self.command
        if self.simulator:
            command = tuple(adapters.command(self.simulator, lambda text: print(text, file=sys.stderr)))
        tls = None if self.tls is None else self.tls.beside(context.base)
        return RemoteNetwork(
            Target(command=command, address=self.address or None, tls=tls, name=self.simulator),
            self.settings(),
            FailurePolicy(
                answer_s=self.answer_timeout / 1e12,
                budget_s=self.budget / 1e12,
                recover=self.recover,
                most_deaths=self.most_deaths,
            ),
        )

    def settings(self) -> SessionSettings:
        """What the session asks for."""
        marks = self.ecn_min is not None
        return SessionSettings(
            queue_discipline=self.queue,
            queue_bytes=self.queue_size,
            mark_min_bytes=self.ecn_min,
            mark_max_bytes=self.ecn_max if marks else None,
            transport=self.transport,
            mtu_bytes=self.mtu,
            mltcp=self.mltcp,
            routing=self.routing,
            routing_seed=self.routing_seed,
            link_events=[event for failure in self.failures for event in failure.events()],
            options={key: _option(value) for key, value in self.options.items()},
        )


def _option(value: Any) -> str:
    """As adapters read it: YAML takes ``off`` and ``on`` for truth values, and they take the words."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


NS3 = Remote(simulator="ns3")
"""``network: ns3``."""
ASTRASIM = Remote(simulator="astrasim")
"""``network: astrasim``."""
