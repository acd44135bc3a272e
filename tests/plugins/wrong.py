"""One of each kind that can't be one: another base, nothing of what the base asks for, other arguments."""

from __future__ import annotations

from typing import Any

from cosim.plugins import (
    Algorithm,
    Arrival,
    Balancer,
    CaptureFormat,
    CommunicationLibrary,
    Control,
    Executor,
    Format,
    Framework,
    GpuSpec,
    HostSpec,
    MemorySpec,
    Model,
    NetworkSimulator,
    NetworkSpec,
    Optimizer,
    Placement,
    ProcessSpec,
    RoutingSpec,
    Scheduler,
    Study,
    TopologyFormat,
    TopologySpec,
    WorkloadSpec,
)


class Plain:
    """Of no base at all."""


class Bare(NetworkSimulator):
    """A simulator where its spec should stand."""


class Network(NetworkSpec):
    """Lacks its build."""


class OldNetwork(NetworkSpec):
    """Builds without a context."""

    def build(self) -> Any:  # type: ignore[override]
        return None


class NothingNetwork(NetworkSpec):
    """Builds nothing."""

    def build(self, context: Any) -> Any:
        return None


class CongestionControl(Control):
    """Lacks its update."""


class Topology(TopologySpec):
    """Lacks its build."""


class Routing(RoutingSpec):
    """Builds without a context."""

    def build(self, fabric: Any) -> Any:  # type: ignore[override]
        return None


class Workload(WorkloadSpec):
    """Lacks its build."""


class AModel(Model):
    """Lacks what it is made of."""


class AGpu(GpuSpec):
    """Lacks its build."""


class AHost(HostSpec):
    """Lacks its build."""


class ALibrary(CommunicationLibrary):
    """Lacks its kind."""


class AFramework(Framework):
    """Lacks what it does."""


class Collective(Algorithm):
    """Lacks its name, what it carries, and its build."""


class APlacement(Placement):
    """Chooses nothing."""


class AnArrival(Arrival):
    """Has the seed that others are not given."""

    def times(self, count: int, context: Any, seed: int) -> Any:  # type: ignore[override]
        return None


class AScheduler(Scheduler):
    """Decides nothing."""


class AFormat(Format):
    """Writes nothing."""


class ABalancer(Balancer):
    """Chooses nothing."""


class AMemory(MemorySpec):
    """Has no devices."""


class AProcess(ProcessSpec):
    """Does not live."""


class AnExecutor(Executor):
    """Runs nothing."""


class ACaptureFormat(CaptureFormat):
    """Refuses nothing."""


class ATopologyFormat(TopologyFormat):
    """Reads nothing."""


class AStudy(Study):
    """Asks nothing."""


class AnOptimizer(Optimizer):
    """Starts nothing."""
