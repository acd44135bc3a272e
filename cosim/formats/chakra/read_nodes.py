"""One rank's Chakra nodes as operations, as ASTRA-sim's workload layer runs them.

Follows ``Workload.cc`` and ``HardwareResource.cc`` of ASTRA-sim 2 with Chakra's FeederV3: of the nodes that
could start, the one with the lowest id goes first, so operations are numbered by node id. A node runs on

- ``cpu`` when its ``is_cpu_op`` is true, whatever its type; else on
- ``compute`` when it is a COMP node,
- no stream, without limit, when it is a RECV,
- ``comm`` otherwise: one send, collective or memory access at a time.

COMP takes ``duration_micros``, 1 ns where that is 0; with a ``roofline`` what its ``num_ops`` and
``tensor_size`` take (:mod:`cosim.formats.chakra.roofline`). METADATA and INVALID nodes take no time. MEM
nodes are loads from and stores to the scenario's memory, which has ASTRA-sim's forms (:mod:`cosim.memory`);
with a ``memory`` of the trace's own they take ``latency + int(tensor_size / rate)``, in whole ns, as with
its ``PER_NPU_MEMORY_EXPANSION``. ASTRA-sim replays the duration of a BROADCAST and refuses BARRIER; both
are simulated here. ``comm_priority`` and local memory use have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cosim.files.import_report import ReportBuilder
from cosim.formats.chakra.attributes import Attributes, node_error
from cosim.formats.chakra.et_def_pb2 import CollectiveCommType, Node, NodeType
from cosim.formats.chakra.groups import Groups, read_metadata_groups
from cosim.formats.chakra.roofline import Roofline
from cosim.units import NEVER, PS_PER_NS, PS_PER_US
from cosim.workload.dependencies import find_cycle
from cosim.workload.operation import LOAD, STORE
from cosim.workload.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    CPU_STREAM,
    NO_STREAM,
    Operation,
    OpKind,
    Peer,
)

COLLECTIVES = {
    CollectiveCommType.ALL_REDUCE: "all_reduce",
    CollectiveCommType.ALL_GATHER: "all_gather",
    CollectiveCommType.REDUCE_SCATTER: "reduce_scatter",
    CollectiveCommType.ALL_TO_ALL: "all_to_all",
    CollectiveCommType.BROADCAST: "broadcast",
    CollectiveCommType.BARRIER: "barrier",
}
_COMM_TYPES = (NodeType.COMM_COLL_NODE, NodeType.COMM_SEND_NODE, NodeType.COMM_RECV_NODE)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """What a rank's nodes are read against.

    ``dims`` are sizes of mesh dimensions, dimension 0 fastest, or None; ``memory`` is (latency in ps,
    rate in bits/s), or None: the scenario's memory times accesses. ``ctrl_deps``: control dependencies
    count too. ``roofline`` times computations that have ``num_ops``.
    """

    rank: int
    world_size: int
    groups: Groups
    dims: tuple[int, ...] | None = None
    memory: tuple[int, float] | None = None
    ctrl_deps: bool = True
    roofline: Roofline | None = None


def dim_axis(dim: int) -> str:
    """Name of the mesh axis for a dimension."""
    return f"dim{dim}"


def translate(
    nodes: Sequence[Node], file: str, context: TraceContext, report: ReportBuilder
) -> tuple[Operation, ...]:
    """Operations in order of node id.

    Raises
    ------
    WorkloadError
        An id twice, a dependency on a node that isn't there, a cycle, or a node that ASTRA-sim's workload
        layer would refuse too; names the node.
    """
    ordered = sorted(nodes, key=lambda node: node.id)
    deps = dependencies(ordered, file, ctrl_deps=context.ctrl_deps)
    groups = dict(context.groups)
    for node in ordered:
        if node.type == NodeType.METADATA_NODE:
            groups.update(read_metadata_groups(node.inputs.values, file, f"node {node.id} {node.name!r}"))
    reader = _NodeReader(file, context, groups, report)
    report.read("data dependency", sum(len(node.data_deps) for node in ordered))
    control = sum(len(node.ctrl_deps) for node in ordered)
    if control and context.ctrl_deps:
        report.read("control dependency", control)
    elif control:
        report.ignored("control dependency (dependencies: data)", control)
    return tuple(reader.read(node, before) for node, before in zip(ordered, deps, strict=True))


def dependencies(ordered: Sequence[Node], file: str, *, ctrl_deps: bool) -> list[tuple[int, ...]]:
    """Positions in ``ordered`` (by id) that each node waits for: data and, as FeederV3, control dependencies.

    Raises
    ------
    WorkloadError
        An id twice, a dependency on a node that isn't there, or a cycle.
    """
    position: dict[int, int] = {}
    for number, node in enumerate(ordered):
        if node.id in position:
            raise node_error(file, node, f"node id {node.id} is there twice")
        position[node.id] = number
    hint = None
    if ctrl_deps and any(node.ctrl_deps for node in ordered):
        hint = "traces of PyTorch have the caller as control dependency: read them with `dependencies: data`"
    found = []
    for node in ordered:
        # A node may name the same one as data and as control: it waits for it once.
        wanted = {*node.data_deps, *node.ctrl_deps} if ctrl_deps else set(node.data_deps)
        for other in sorted(wanted):
            if other not in position:
                kind = "data" if other in node.data_deps else "control"
                raise node_error(
                    file,
                    node,
                    f"{kind} dependency on node {other}, which isn't in the file",
                    hint if kind == "control" else "was the file cut off?",
                )
        found.append(tuple(sorted(position[other] for other in wanted)))
    cycle = find_cycle(found)
    if cycle:
        names = [f"node {ordered[number].id} {ordered[number].name!r}" for number in cycle]
        shown = " -> ".join([*names[:8], "..." if len(names) > 8 else names[0]])
        raise node_error(file, ordered[cycle[0]], f"nodes that wait for each other: {shown}", hint)
    return found


class _NodeReader:
    """Reads one node at a time; counts what it used."""

    def __init__(self, file: str, context: TraceContext, groups: Groups, report: ReportBuilder) -> None:
        self.file = file
        self.context = context
        self.groups = groups
        self.report = report

    def read(self, node: Node, deps: tuple[int, ...]) -> Operation:
        attributes = Attributes(node, self.file)
        used = {"is_cpu_op"}
        on_cpu = bool(attributes.integer("is_cpu_op"))
        if node.type == NodeType.COMP_NODE:
            operation = self._compute(node, deps, CPU_STREAM if on_cpu else COMPUTE_STREAM, attributes, used)
        elif node.type in _COMM_TYPES and on_cpu:
            operation = self._launch(node, deps, attributes)
        elif node.type == NodeType.COMM_COLL_NODE:
            operation = self._collective(node, deps, attributes)
            used |= {"comm_type", "comm_size", "pg_name", "involved_dim"}
        elif node.type in (NodeType.COMM_SEND_NODE, NodeType.COMM_RECV_NODE):
            operation = self._message(node, deps, attributes)
            used |= {"comm_src", "comm_dst", "comm_size", "comm_tag"}
        elif node.type in (NodeType.MEM_LOAD_NODE, NodeType.MEM_STORE_NODE):
            operation = self._memory(node, deps, attributes, CPU_STREAM if on_cpu else COMM_STREAM)
            used.add("tensor_size")
        elif node.type in (NodeType.METADATA_NODE, NodeType.INVALID_NODE):
            operation = Operation(node.name, OpKind.COMPUTE, NO_STREAM, deps)
            self.report.assumed(f"{NodeType.Name(node.type)} takes no time")
        else:
            raise attributes.error(
                f"unknown node type {node.type}", f"types are {', '.join(NodeType.keys())}"
            )
        self._count(node, attributes, used)
        return operation

    def _count(self, node: Node, attributes: Attributes, used: set[str]) -> None:
        self.report.read(NodeType.Name(node.type))
        for name in attributes.names():
            if name in used:
                self.report.read(f"attribute {name}")
            else:
                self.report.ignored(f"attribute {name}")
        if node.start_time_micros:
            self.report.ignored("start_time_micros")
        if node.duration_micros and node.type in _COMM_TYPES and not attributes.integer("is_cpu_op"):
            self.report.ignored("duration_micros of a communication node (it is simulated)")
        if node.HasField("outputs") or (node.HasField("inputs") and node.type != NodeType.METADATA_NODE):
            self.report.ignored("inputs and outputs (tensors)")

    def _by_roofline(self, node: Node, attributes: Attributes, used: set[str]) -> int | None:
        """Picoseconds of a computation that says its operations; None: its duration holds."""
        operations, size = attributes.integer("num_ops"), attributes.integer("tensor_size")
        if not operations:
            return None
        if operations < 0 or (size is not None and size < 0):
            raise attributes.error(f"num_ops is {operations}, tensor_size {size}")
        if self.context.roofline is None:
            if node.duration_micros == 0:
                self.report.doubt(
                    self.file,
                    "computations have num_ops and no duration: each takes 1 ns, as in ASTRA-sim without a "
                    "roofline",
                    "roofline: system.json, or roofline: {peak_flops: 312e12, rate: 2039GB/s}",
                )
            return None
        used |= {"num_ops", "tensor_size"}
        return self.context.roofline.time_ps(operations, size or 0)

    def _duration(self, node: Node) -> int:
        if node.duration_micros == 0:
            self.report.assumed("1 ns for a duration of 0, as ASTRA-sim")
            return PS_PER_NS
        duration = node.duration_micros * PS_PER_US
        if duration > NEVER:
            raise node_error(self.file, node, f"duration_micros {node.duration_micros} is above 53 days")
        return duration

    def _compute(
        self,
        node: Node,
        deps: tuple[int, ...],
        stream: str,
        attributes: Attributes | None = None,
        used: set[str] | None = None,
    ) -> Operation:
        took = None if attributes is None or used is None else self._by_roofline(node, attributes, used)
        duration = self._duration(node) if took is None else took
        if duration > NEVER:
            raise node_error(self.file, node, "takes more than 53 days by its roofline")
        flops = 0 if took is None or attributes is None else attributes.integer("num_ops") or 0
        return Operation(node.name, OpKind.COMPUTE, stream, deps, duration_ps=duration, flops=float(flops))

    def _launch(self, node: Node, deps: tuple[int, ...], attributes: Attributes) -> Operation:
        """The call on the host, beside which the trace has the kernel that communicates."""
        if attributes.integer("comm_size") is not None:
            raise attributes.error("a communication with comm_size on the CPU", "set is_cpu_op to false")
        kind = NodeType.Name(node.type)
        self.report.assumed(f"{kind} on the CPU without comm_size: a call on the host, its duration replayed")
        return self._compute(node, deps, CPU_STREAM)

    def _memory(self, node: Node, deps: tuple[int, ...], attributes: Attributes, stream: str) -> Operation:
        size = self._size(attributes, "tensor_size")
        if self.context.memory is None:
            access = STORE if node.type == NodeType.MEM_STORE_NODE else LOAD
            return Operation(node.name, OpKind.MEMORY, stream, deps, size_bytes=size, access=access)
        latency_ps, rate_bps = self.context.memory
        transfer_ns = int(Fraction(size * 8 * 10**9) / Fraction(rate_bps))
        duration = latency_ps + transfer_ns * PS_PER_NS
        return Operation(node.name, OpKind.MEMORY, stream, deps, duration_ps=duration, bytes_moved=size)

    def _message(self, node: Node, deps: tuple[int, ...], attributes: Attributes) -> Operation:
        sends = node.type == NodeType.COMM_SEND_NODE
        rank = self.context.rank
        own, other = ("comm_src", "comm_dst") if sends else ("comm_dst", "comm_src")
        mine = attributes.integer(own)
        if mine is None:
            self.report.assumed(f"{own} is the rank itself where it is absent")
        elif mine != rank:
            raise attributes.error(
                f"{'sends' if sends else 'receives'} for rank {mine}, but stands in the trace of rank {rank}",
                f"a {'SEND' if sends else 'RECV'} belongs into the trace of its {own}",
            )
        peer = attributes.integer(other)
        if peer is None:
            raise attributes.error(f"attribute {other!r} is missing")
        if not 0 <= peer < self.context.world_size or peer == rank:
            raise attributes.error(
                f"{other} is {peer}", f"it should be another of the {self.context.world_size} ranks"
            )
        tag = attributes.integer("comm_tag")
        if tag is None:
            self.report.assumed("comm_tag 0 where it is absent")
        return Operation(
            node.name,
            OpKind.SEND if sends else OpKind.RECV,
            # A RECV in the stream would hold up the SEND behind it, for which the other rank may be waiting.
            COMM_STREAM if sends else NO_STREAM,
            deps,
            size_bytes=self._size(attributes, "comm_size"),
            peer=Peer(rank=peer),
            tag=tag or 0,
        )

    def _collective(self, node: Node, deps: tuple[int, ...], attributes: Attributes) -> Operation:
        kind = attributes.integer("comm_type")
        if kind is None:
            raise attributes.error("attribute 'comm_type' is missing")
        collective = next((name for value, name in COLLECTIVES.items() if value == kind), None)
        if collective is None:
            name = CollectiveCommType.Name(kind) if kind in CollectiveCommType.values() else "unknown"
            raise attributes.error(
                f"comm_type {kind} ({name}) can't be simulated",
                f"there are: {', '.join(CollectiveCommType.Name(value) for value in COLLECTIVES)}",
            )
        if collective == "broadcast":
            self.report.assumed("BROADCAST is simulated, from the group's first rank (ASTRA-sim replays it)")
        size = 0 if collective == "barrier" else self._size(attributes, "comm_size")
        ranks, axes = self._group(attributes)
        return Operation(
            node.name,
            OpKind.COLLECTIVE,
            COMM_STREAM,
            deps,
            collective=collective,
            axes=axes,
            ranks=ranks,
            size_bytes=size,
        )

    def _group(self, attributes: Attributes) -> tuple[tuple[int, ...] | None, tuple[str, ...]]:
        """Explicit ranks, or mesh axes; ``pg_name`` wins over ``involved_dim``, as in ASTRA-sim."""
        name = attributes.text("pg_name") or ""
        # To ASTRA-sim group 0 is no group: all ranks, or the dimensions that are involved.
        if name not in ("", "0"):
            if name not in self.groups:
                raise attributes.error(
                    f"process group {name!r} is not known",
                    f"there are: {', '.join(sorted(self.groups))}"
                    if self.groups
                    else "give `comm_groups: FILE`",
                )
            ranks = self.groups[name]
            if not ranks:
                return None, ()
            wrong = [rank for rank in ranks if rank >= self.context.world_size]
            if wrong:
                raise attributes.error(
                    f"process group {name!r} has rank {wrong[0]} of {self.context.world_size} ranks"
                )
            if self.context.rank not in ranks:
                raise attributes.error(
                    f"process group {name!r} is {list(ranks)}, without this rank {self.context.rank}"
                )
            return ranks, ()
        if name == "":
            self.report.assumed("all ranks as the group where there is no pg_name")
        return None, self._axes(attributes)

    def _axes(self, attributes: Attributes) -> tuple[str, ...]:
        involved = attributes.flags("involved_dim")
        if involved is None:
            return ()
        dims = self.context.dims
        if dims is None:
            if all(involved):
                return ()
            raise attributes.error(
                f"involved_dim {list(involved)} leaves dimensions out",
                "give the sizes of the dimensions, dimension 0 fastest: `dims: [8, 4]`",
            )
        if len(involved) < len(dims):
            raise attributes.error(f"involved_dim has {len(involved)} entries for {len(dims)} dimensions")
        chosen = involved[: len(dims)]
        if not any(chosen):
            raise attributes.error("involved_dim involves no dimension")
        # Dimension 0 is the fastest; a mesh names its fastest axis last.
        return () if all(chosen) else tuple(dim_axis(d) for d in reversed(range(len(dims))) if chosen[d])

    def _size(self, attributes: Attributes, name: str) -> int:
        size = attributes.integer(name)
        if size is None:
            raise attributes.error(f"attribute {name!r} is missing")
        if not 0 <= size <= NEVER:
            raise attributes.error(f"{name} is {size}")
        return size


def reject_rank_dependent(nodes: Sequence[Node], file: str) -> None:
    """Refuse nodes that can't stand in the trace of several ranks.

    Raises
    ------
    WorkloadError
        A SEND, a RECV or a process group.
    """
    for node in nodes:
        if node.type in (NodeType.COMM_SEND_NODE, NodeType.COMM_RECV_NODE):
            raise node_error(
                file, node, f"a {NodeType.Name(node.type)} can't be every rank's", "give a file for each rank"
            )
