"""Kind ``chakra``: a folder of Chakra execution traces, one per rank, as a workload."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveInt

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.chakra.et_def_pb2 import Node, NodeType
from cosim.formats.chakra.file import read_trace
from cosim.formats.chakra.folder import rank_files
from cosim.formats.chakra.groups import GROUPS_FILE, Groups, read_comm_groups
from cosim.formats.chakra.read_nodes import TraceContext, dim_axis, reject_rank_dependent, translate
from cosim.formats.chakra.roofline import Roofline, read_roofline
from cosim.spec import RateBps, Spec, TimePs
from cosim.workload.by_rank import rank_workload
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import DeviceMesh, Operation, OpKind, Workload


class RemoteMemory(Spec):
    """Times MEM_LOAD and MEM_STORE by latency + size / rate, each rank on its own."""

    latency: TimePs = Field(ge=0, description="of each access (ASTRA-sim: remote-mem-latency)")
    rate: RateBps = Field(description="of each access (ASTRA-sim: remote-mem-bw, in GB/s)")


class ChakraWorkload(WorkloadSpec):
    """Chakra execution traces (.et, one per rank), run as ASTRA-sim's workload layer runs them."""

    path: str = Field(
        description="prefix of PREFIX.<rank>.et, a folder that holds one prefix, or one .et file"
    )
    comm_groups: str | dict[str, list[int]] | None = Field(
        default=None,
        description='process groups: ASTRA-sim\'s JSON file, or {"1": [0, 1], ...} in place;'
        " omitted: comm_groups.json in the folder of the traces, if there is one",
    )
    world_size: PositiveInt | None = Field(
        default=None,
        description="ranks, where not one per file: one file stands for all, or the first files are read",
    )
    dims: list[PositiveInt] | None = Field(
        default=None, description="sizes of the dimensions that involved_dim speaks of, dimension 0 fastest"
    )
    dependencies: Literal["all", "data"] = Field(
        default="all",
        description="all: data and control, as FeederV3; data: as older feeders; PyTorch's traces need it",
    )
    roofline: str | Roofline | None = Field(
        default=None,
        description="times computations that have num_ops and tensor_size: ASTRA-sim's system.json, or "
        "{peak_flops, rate}; omitted: their durations",
    )
    memory: RemoteMemory | None = Field(
        default=None,
        description="{latency, rate} of remote memory; without it the scenario's memory times memory nodes",
    )
    rendezvous: bool = Field(
        default=False,
        description="a receiver asks for each message first, as ASTRA-sim's rendezvous-protocol",
    )

    def build(self, context: Context) -> Workload:
        """Read the traces; ``path`` and ``comm_groups`` are relative to ``context.base``.

        Raises
        ------
        WorkloadError
            A file that is missing, broken or can't be run; names file and node.
        """
        path = context.base / self.path
        files = rank_files(path)
        report = ReportBuilder()
        files = self._one_per_rank(files, report)
        world_size = len(files)
        if self.dims is not None and prod(self.dims) != world_size:
            raise WorkloadError(
                f"dims {self.dims} are {prod(self.dims)} ranks, but there are {world_size} traces",
                location=Location(str(path)),
            )
        groups = self._groups(path, context, report)
        roofline = self.roofline
        if isinstance(roofline, str):
            file = context.base / roofline
            roofline = read_roofline(file)
            if roofline is None:
                report.ignored(f"{file.name}: its roofline is not enabled, durations hold")
        operations = self._operations(files, world_size, groups, roofline, report)
        operations = _separate_sizes(operations, report)
        mesh = None
        if self.dims is not None:
            mesh = DeviceMesh({dim_axis(d): self.dims[d] for d in reversed(range(len(self.dims)))})
        if self.rendezvous:
            report.assumed("a request of 8 KiB before each message (rendezvous)")
        return rank_workload(path.name, operations, report, rendezvous=self.rendezvous, mesh=mesh)

    def _groups(self, path: Path, context: Context, report: ReportBuilder) -> Groups:
        """Process groups: those that are named, or of the file that lies in the folder of the traces."""
        if self.comm_groups is not None:
            return read_comm_groups(self.comm_groups, context.base)
        beside = path / GROUPS_FILE
        if not beside.is_file():
            return {}
        report.read(f"file of process groups: {GROUPS_FILE}, beside the traces")
        return read_comm_groups(str(beside), Path())

    def idle_in(self, workload: Workload) -> list[tuple[str, str]]:
        """Settings that were given but that these traces have no use for."""
        operations = [op for program in workload.programs for op in program.operations]
        control = "control dependency (dependencies: data)"
        uses = {
            "comm_groups": (any(op.ranks is not None for op in operations), "no collective has a pg_name"),
            "dims": (any(op.axes for op in operations), "no collective leaves dimensions out (involved_dim)"),
            "roofline": (any(op.flops for op in operations) or self.roofline is None, "no node has num_ops"),
            "memory": (any(op.kind is OpKind.MEMORY for op in operations), "there are no memory nodes"),
            "rendezvous": (any(op.kind is OpKind.SEND for op in operations), "there are no SEND nodes"),
            "dependencies": (
                self.dependencies == "all" or any(control in line for line in workload.report.ignored),
                "there are no control dependencies",
            ),
        }
        return [
            (name, why)
            for name, (matters, why) in uses.items()
            if name in self.model_fields_set and not matters and getattr(self, name)
        ]

    def _one_per_rank(self, files: list[Path], report: ReportBuilder) -> list[Path]:
        wanted = self.world_size
        if wanted is None:
            if len(files) == 1 and _communicates(files[0]):
                raise WorkloadError(
                    "the trace of one rank communicates with others; how many are they?",
                    location=Location(str(files[0])),
                    hint="say so: `world_size: 8` runs this trace on 8 ranks",
                )
            wanted = len(files)
        elif wanted < len(files):
            report.ignored(f"traces of ranks {wanted} to {len(files) - 1} (world_size: {wanted})")
        elif wanted > len(files) > 1:
            raise WorkloadError(
                f"there are {len(files)} traces, but world_size is {wanted}",
                location=Location(str(files[0])),
                hint="give a trace for each rank, or exactly one for all",
            )
        elif wanted > 1 == len(files):
            reject_rank_dependent(read_trace(files[0])[1], str(files[0]))
            report.assumed(f"{files[0].name} runs on all {wanted} ranks")
            return files * wanted
        return files[:wanted]

    def _operations(
        self,
        files: list[Path],
        world_size: int,
        groups: dict[str, tuple[int, ...]],
        roofline: Roofline | None,
        report: ReportBuilder,
    ) -> list[tuple[Operation, ...]]:
        """Each rank's operations; what doesn't depend on the rank is read once per distinct file."""
        memory = None if self.memory is None else (self.memory.latency, self.memory.rate)
        shared: dict[bytes, tuple[tuple[Operation, ...], ReportBuilder]] = {}
        digest_of: dict[Path, bytes] = {}
        found = []
        for rank, file in enumerate(files):
            if file not in digest_of:
                digest_of[file] = hashlib.sha256(_bytes(file)).digest()
            digest = digest_of[file]
            if digest not in shared:
                _, nodes = read_trace(file)
                own = ReportBuilder()
                context = TraceContext(
                    rank,
                    world_size,
                    groups,
                    None if self.dims is None else tuple(self.dims),
                    memory,
                    self.dependencies == "all",
                    roofline,
                )
                operations = translate(nodes, str(file), context, own)
                if any(op.peer is not None or op.ranks is not None for op in operations):
                    report.add(own)
                    found.append(operations)
                    continue
                shared[digest] = (operations, own)
            report.add(shared[digest][1])
            found.append(shared[digest][0])
        return found


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise WorkloadError(
            f"can't be read: {error.strerror or error}", location=Location(str(file))
        ) from None


def _communicates(file: Path) -> bool:
    """Whether a trace has a communication other than a call on the host."""

    def on_cpu(node: Node) -> bool:
        return any(attribute.name == "is_cpu_op" and attribute.bool_val for attribute in node.attr)

    kinds = (NodeType.COMM_COLL_NODE, NodeType.COMM_SEND_NODE, NodeType.COMM_RECV_NODE)
    return any(node.type in kinds and not on_cpu(node) for node in read_trace(file)[1])


def _separate_sizes(
    operations: list[tuple[Operation, ...]], report: ReportBuilder
) -> list[tuple[Operation, ...]]:
    """Give messages of one (source, destination, tag) but of several sizes a tag per size.

    ASTRA-sim pairs the n-th SEND with the n-th RECV of the same source, destination, tag *and size*; a
    program pairs by source, destination and tag. Where both sides don't list the same sizes nothing is
    changed, so that the difference is found as a mismatch.
    """
    channels: dict[tuple[int, int, int], tuple[Counter[int], Counter[int]]] = defaultdict(
        lambda: (Counter(), Counter())
    )
    for rank, program in enumerate(operations):
        for op in program:
            if op.peer is not None and op.peer.rank is not None:
                sends = op.kind is OpKind.SEND
                ends = (rank, op.peer.rank) if sends else (op.peer.rank, rank)
                channels[*ends, op.tag][0 if sends else 1][op.size_bytes] += 1
    several = {key for key, (sent, received) in channels.items() if len(sent) > 1 and sent == received}
    if not several:
        return operations
    highest = max(tag for _, _, tag in channels)
    pairs = sorted({(key[2], size) for key in several for size in channels[key][0]})
    tag_of = {pair: highest + 1 + number for number, pair in enumerate(pairs)}
    report.assumed(
        "a tag per size where sizes share source, destination and tag: ASTRA-sim pairs by size too",
        len(several),
    )
    changed = []
    for rank, program in enumerate(operations):
        ops = []
        for op in program:
            if op.peer is not None and op.peer.rank is not None:
                ends = (rank, op.peer.rank) if op.kind is OpKind.SEND else (op.peer.rank, rank)
                if (*ends, op.tag) in several:
                    ops.append(replace(op, tag=tag_of[op.tag, op.size_bytes]))
                    continue
            ops.append(op)
        changed.append(tuple(ops))
    return changed
