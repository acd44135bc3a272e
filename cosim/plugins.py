"""For plug-ins: the base of each kind, and the types that its methods are given and give.

==========================  =============================  ==========================
a scenario's                base                           entry points in the group
==========================  =============================  ==========================
``network``                 :class:`NetworkSpec`           ``cosim.networks``
``network.control``         :class:`Control`               ``cosim.controls``
``network.balancer``        :class:`Balancer`              ``cosim.balancers``
``topology``                :class:`TopologySpec`          ``cosim.topologies``
``topology.format``         :class:`TopologyFormat`        ``cosim.topology_formats``
``topology.routing``        :class:`RoutingSpec`           ``cosim.routings``
``jobs[0].workload``        :class:`WorkloadSpec`          ``cosim.workloads``
``workload.model``          :class:`Model`                 ``cosim.models``
``workload.gpu``            :class:`GpuSpec`               ``cosim.gpus``
``workload.host``           :class:`HostSpec`              ``cosim.hosts``
``workload.framework``      :class:`Framework`             ``cosim.frameworks``
``workload.libraries``      :class:`CommunicationLibrary`  ``cosim.communications``
``jobs[0].placement``       :class:`Placement`             ``cosim.placements``
``jobs[0].arrival``         :class:`Arrival`               ``cosim.arrivals``
``scheduler``               :class:`Scheduler`             ``cosim.schedulers``
``collectives.all_reduce``  :class:`Algorithm`             ``cosim.collectives``
``cosim translate --to``    :class:`Format`                ``cosim.formats``
``cosim analyse --format``  :class:`CaptureFormat`         ``cosim.capture_formats``
``memory``                  :class:`MemorySpec`            ``cosim.memories``
``processes``               :class:`ProcessSpec`           ``cosim.processes``
a sweep's ``executor``      :class:`Executor`              ``cosim.executors``
``cosim study NAME``        :class:`Study`                 ``cosim.studies``
a design's ``optimizer``    :class:`Optimizer`             ``cosim.optimizers``
==========================  =============================  ==========================

A scenario names a plug-in by its entry point, or by its file, which lies beside the scenario:
``network: {plugin: my.py:MyNetwork, ...}``. Its fields are its settings, its docstring's first line is what
``cosim list`` shows. Names are imported when they are first used. What isn't here may change without notice.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.captures.contract import CaptureFormat, capture_of_rows
    from cosim.captures.traffic import TrafficCapture
    from cosim.cluster.contract import Arrival, Placement, Wanted
    from cosim.cluster.schedulers.contract import Decision, LinkScore, Scheduler, Shifts
    from cosim.cluster.schedulers.profile import JobProfile, Placed
    from cosim.context import Context
    from cosim.doubts import Doubt
    from cosim.engine.records import JobInfo, Records
    from cosim.errors import (
        AlgorithmError,
        InfeasibleError,
        InputError,
        Location,
        NetworkError,
        TopologyError,
        WorkloadError,
    )
    from cosim.experiment.executors.call import RunCall, RunResult
    from cosim.experiment.executors.contract import Executor
    from cosim.experiment.search.contract import AskTell, DesignPoint, DesignSpace, Optimizer
    from cosim.experiment.studies.contract import Study, StudyRounds, StudyRun
    from cosim.fabric.changes import LinkChange, RouteChange
    from cosim.files.import_report import ImportReport, ReportBuilder
    from cosim.formats.pytorch.libraries import CommunicationLibrary, SentBytes, TracedOperator
    from cosim.gpu.contract import GpuSpec
    from cosim.gpu.efficiency import Calibration, Efficiency
    from cosim.gpu.gpus import DType, Gpu
    from cosim.gpu.kernels import Kernel, KernelKind, fused_attention, matmul, matmul_backward, memory
    from cosim.host.contract import HostSpec
    from cosim.host.hosts import Host
    from cosim.memory.contract import MemorySpec
    from cosim.models.catalogue.architecture import TransformerModel
    from cosim.models.catalogue.cut import Parallel
    from cosim.models.catalogue.workload import ModelWorkload
    from cosim.models.contract import DataParallelModel, Framework, Model
    from cosim.models.frameworks import Megatron
    from cosim.models.job import ModelJob
    from cosim.models.parts import Exchange, Layer, Piece
    from cosim.network.arrival import ArrivalNetwork, Message
    from cosim.network.balancing.contract import Balancer
    from cosim.network.congestion.contract import Control
    from cosim.network.contract import NetworkSpec
    from cosim.network.flows import F64, I32, I64, Completions, FlowBatch, FlowGroup, FlowTable
    from cosim.network.forwarding import ForwardingNetwork
    from cosim.network.simulator import (
        Advance,
        Capabilities,
        NetworkSimulator,
        NetworkStatistics,
        QueueSample,
        RateSample,
    )
    from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
    from cosim.pattern.contract import Algorithm
    from cosim.pattern.costs import Costs
    from cosim.pattern.group_links import GroupLinks
    from cosim.pattern.template import COPY, NO_DATA, REDUCE, Collective, Template
    from cosim.processes.carrier import Carried, Carrier
    from cosim.processes.contract import Driver, ProcessSpec
    from cosim.processes.simulation import Simulation
    from cosim.processes.work import DrivenRanks
    from cosim.registry import Named
    from cosim.results.study import StudyResult, StudyTable
    from cosim.spec import RateBps, SizeBytes, Spec, TimePs
    from cosim.topology.builder import Builder
    from cosim.topology.contract import Count, Fabric, Latency, Rate, RoutingSpec, TopologySpec
    from cosim.topology.file_format import Cable, Cables, TopologyFormat
    from cosim.topology.graph import Paths, Topology
    from cosim.topology.grid import Dimension
    from cosim.topology.host_shape import FabricCosts, HostShape
    from cosim.translation.contract import Format, Progress
    from cosim.translation.loss_report import LossReport, TranslationError
    from cosim.translation.says import Says
    from cosim.translation.source import Source
    from cosim.workload.contract import WorkloadSpec
    from cosim.workload.draws import draw, exponential
    from cosim.workload.program import (
        COMM_STREAM,
        COMPUTE_STREAM,
        NO_STREAM,
        DeviceMesh,
        Operation,
        OpKind,
        Peer,
        Program,
        Workload,
    )
    from cosim.workload.table import OperationTable

_FROM = {
    "cosim.captures.contract": "CaptureFormat capture_of_rows",
    "cosim.captures.traffic": "TrafficCapture",
    "cosim.cluster.contract": "Arrival Placement Wanted",
    "cosim.cluster.schedulers.contract": "Decision LinkScore Scheduler Shifts",
    "cosim.cluster.schedulers.profile": "JobProfile Placed",
    "cosim.context": "Context",
    "cosim.engine.records": "JobInfo Records",
    "cosim.errors": (
        "AlgorithmError InfeasibleError InputError Location NetworkError TopologyError WorkloadError"
    ),
    "cosim.experiment.executors.call": "RunCall RunResult",
    "cosim.experiment.executors.contract": "Executor",
    "cosim.experiment.search.contract": "AskTell DesignPoint DesignSpace Optimizer",
    "cosim.experiment.studies.contract": "Study StudyRounds StudyRun",
    "cosim.doubts": "Doubt",
    "cosim.files.import_report": "ImportReport ReportBuilder",
    "cosim.formats.pytorch.libraries": "CommunicationLibrary SentBytes TracedOperator",
    "cosim.gpu.contract": "GpuSpec",
    "cosim.gpu.efficiency": "Calibration Efficiency",
    "cosim.gpu.gpus": "DType Gpu",
    "cosim.gpu.kernels": "Kernel KernelKind fused_attention matmul matmul_backward memory scan",
    "cosim.host.contract": "HostSpec",
    "cosim.host.hosts": "Host",
    "cosim.memory.contract": "MemorySpec",
    "cosim.models.catalogue.architecture": "TransformerModel",
    "cosim.models.catalogue.cut": "Parallel",
    "cosim.models.catalogue.workload": "ModelWorkload",
    "cosim.models.contract": "DataParallelModel Framework Model",
    "cosim.models.frameworks": "Megatron",
    "cosim.models.job": "ModelJob",
    "cosim.models.parts": "Exchange Layer Piece",
    "cosim.network.arrival": "ArrivalNetwork Message",
    "cosim.network.balancing.contract": "Balancer",
    "cosim.network.congestion.contract": "Control",
    "cosim.network.contract": "NetworkSpec",
    "cosim.network.flows": "F64 I32 I64 Completions FlowBatch FlowGroup FlowTable",
    "cosim.network.forwarding": "ForwardingNetwork",
    "cosim.network.simulator": "Advance Capabilities NetworkSimulator NetworkStatistics QueueSample "
    "RateSample",
    "cosim.pattern.assemble": "COMPLETION START Block assemble entries exits",
    "cosim.pattern.contract": "Algorithm",
    "cosim.pattern.costs": "Costs",
    "cosim.pattern.template": "COPY NO_DATA REDUCE Collective Template",
    "cosim.processes.carrier": "Carried Carrier",
    "cosim.processes.contract": "Driver ProcessSpec",
    "cosim.processes.simulation": "Simulation",
    "cosim.processes.work": "DrivenRanks",
    "cosim.registry": "Named",
    "cosim.results.study": "StudyResult StudyTable",
    "cosim.spec": "RateBps SizeBytes Spec TimePs",
    "cosim.topology.builder": "Builder",
    "cosim.fabric.changes": "LinkChange RouteChange",
    "cosim.topology.contract": "Count Fabric Latency Rate RoutingSpec TopologySpec",
    "cosim.topology.file_format": "Cable Cables TopologyFormat",
    "cosim.topology.graph": "Paths Topology",
    "cosim.topology.grid": "Dimension",
    "cosim.pattern.group_links": "GroupLinks",
    "cosim.topology.host_shape": "FabricCosts HostShape",
    "cosim.translation.contract": "Format Progress",
    "cosim.translation.loss_report": "LossReport TranslationError",
    "cosim.translation.says": "Says",
    "cosim.translation.source": "Source",
    "cosim.workload.contract": "WorkloadSpec",
    "cosim.workload.draws": "draw exponential",
    "cosim.workload.program": "COMM_STREAM COMPUTE_STREAM NO_STREAM DeviceMesh Operation OpKind "
    "Peer Program Workload",
    "cosim.workload.table": "OperationTable",
}
_HOMES = {name: module for module, names in _FROM.items() for name in names.split()}

__all__ = [
    "COMM_STREAM",
    "COMPLETION",
    "COMPUTE_STREAM",
    "COPY",
    "F64",
    "I32",
    "I64",
    "NO_DATA",
    "NO_STREAM",
    "REDUCE",
    "START",
    "Advance",
    "Algorithm",
    "AlgorithmError",
    "Arrival",
    "ArrivalNetwork",
    "AskTell",
    "Balancer",
    "Block",
    "Builder",
    "Cable",
    "Cables",
    "Calibration",
    "Capabilities",
    "CaptureFormat",
    "Carried",
    "Carrier",
    "Collective",
    "CommunicationLibrary",
    "Completions",
    "Context",
    "Control",
    "Costs",
    "Count",
    "DType",
    "DataParallelModel",
    "Decision",
    "DesignPoint",
    "DesignSpace",
    "DeviceMesh",
    "Dimension",
    "Doubt",
    "DrivenRanks",
    "Driver",
    "Efficiency",
    "Exchange",
    "Executor",
    "Fabric",
    "FabricCosts",
    "FlowBatch",
    "FlowGroup",
    "FlowTable",
    "Format",
    "ForwardingNetwork",
    "Framework",
    "Gpu",
    "GpuSpec",
    "GroupLinks",
    "Host",
    "HostShape",
    "HostSpec",
    "ImportReport",
    "InfeasibleError",
    "InputError",
    "JobInfo",
    "JobProfile",
    "Kernel",
    "KernelKind",
    "Latency",
    "Layer",
    "LinkChange",
    "LinkScore",
    "Location",
    "LossReport",
    "Megatron",
    "MemorySpec",
    "Message",
    "Model",
    "ModelJob",
    "ModelWorkload",
    "Named",
    "NetworkError",
    "NetworkSimulator",
    "NetworkSpec",
    "NetworkStatistics",
    "OpKind",
    "Operation",
    "OperationTable",
    "Optimizer",
    "Parallel",
    "Paths",
    "Peer",
    "Piece",
    "Placed",
    "Placement",
    "ProcessSpec",
    "Program",
    "Progress",
    "QueueSample",
    "Rate",
    "RateBps",
    "RateSample",
    "Records",
    "ReportBuilder",
    "RouteChange",
    "RoutingSpec",
    "RunCall",
    "RunResult",
    "Says",
    "Scheduler",
    "SentBytes",
    "Shifts",
    "Simulation",
    "SizeBytes",
    "Source",
    "Spec",
    "Study",
    "StudyResult",
    "StudyRounds",
    "StudyRun",
    "StudyTable",
    "Template",
    "TimePs",
    "Topology",
    "TopologyError",
    "TopologyFormat",
    "TopologySpec",
    "TracedOperator",
    "TrafficCapture",
    "TransformerModel",
    "TranslationError",
    "Wanted",
    "Workload",
    "WorkloadError",
    "WorkloadSpec",
    "assemble",
    "capture_of_rows",
    "draw",
    "entries",
    "exits",
    "exponential",
    "fused_attention",
    "matmul",
    "matmul_backward",
    "memory",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cosim.plugins' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
