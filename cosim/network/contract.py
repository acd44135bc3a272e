"""What a network model of a scenario is: a spec that builds a :class:`NetworkSimulator`.

To plug one in, write the simulator, and a spec of its settings::

    class Slow(NetworkSpec):
        '''Every message takes the same time'''

        time: TimePs = Field(ge=0, description="of each message")

        def build(self, context: Context) -> NetworkSimulator:
            return SlowNetwork(self.time)

and name it: ``network: {plugin: slow.py:Slow, time: 10us}``, or by an entry point in ``cosim.networks``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import model_validator

from cosim.context import Context
from cosim.doubts import Doubt
from cosim.network.flows import I32
from cosim.network.simulator import NetworkSimulator
from cosim.registry import name_of
from cosim.spec import Spec
from cosim.topology.graph import Topology


class NetworkSpec(Spec):
    """Base of the networks that a scenario can name. Fields are settings."""

    needs_scale_up: ClassVar[bool] = False
    """It has to know which links are within scale-up domains, which the wire protocol does not say: such a
    network can't be served."""

    balancing: ClassVar[str] = "fair_share and congestion have load balancers"
    """What a network without ``balancer`` says to who asks for one."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_balancers(cls, data: Any) -> Any:
        if isinstance(data, dict) and "balancer" in data and "balancer" not in cls.model_fields:
            raise ValueError(f"{cls._called(data)} has no balancer: {cls.balancing}")
        return data

    @classmethod
    def _called(cls, data: dict[str, Any]) -> str:
        """What a scenario calls a network of these settings."""
        del data
        return name_of("cosim.networks", cls) or cls.__name__

    @abstractmethod
    def build(self, context: Context) -> NetworkSimulator:
        """A fresh network, yet to be opened; one for each run.

        Raises
        ------
        InputError
            It can't be made of these settings, or of what is installed.
        """

    @property
    def name(self) -> str:
        """As a scenario names it; empty where it is not registered."""
        return name_of("cosim.networks", type(self)) or ""

    def shares_links(self) -> bool:
        """Whether no link ever carries more than its rate, and no message comes sooner than its path's
        latency: what `cosim search` needs to say how long messages take at least.
        """
        return False

    def shares_by_weight(self) -> bool:
        """Whether weights of jobs may matter."""
        return True

    def shares_by_priority(self) -> bool:
        """Whether priorities of jobs may matter; as weights do, where nothing else is said."""
        return self.shares_by_weight()

    def chooses_paths(self) -> bool:
        """Whether messages may go other paths than the routing says, as a load balancer decides."""
        return False

    def simulator_build(self) -> str | None:
        """Which simulator answers, where that is none of this process: with the settings it determines all
        that comes of a run. None: not known.

        Raises
        ------
        InputError, LaunchError
            It is not there.
        """
        return ""

    def why_stalled(self, topology: Topology) -> list[str]:  # noqa: ARG002 - nothing of it matters
        """What was asked of the network that may keep a run from going on, a line each."""
        return []

    def doubts(self) -> list[Doubt]:
        """Settings that would do otherwise on a wire, which is not modelled; ``what`` is the field."""
        return []

    def check_topology(self, topology: Topology) -> None:
        """Refuse a topology that this network can't do, before anything is built.

        Raises
        ------
        TopologyError
            Says what would be right.
        """

    def idle_on(
        self,
        topology: Topology,  # noqa: ARG002 - for networks that have such settings
        jobs: Sequence[I32],  # noqa: ARG002
    ) -> list[tuple[str, str]]:
        """(field, why) of settings that nothing can use; ``jobs`` are the endpoints of each job's ranks."""
        return []
