"""A collective algorithm written as Chakra files, as columns for ``cosim.formats.chakra.custom``.

ASTRA-sim runs such files (``all-reduce-implementation-custom``) with SEND, RECV and COMP nodes only; so here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cosim.formats.chakra.attributes import Attributes, node_error
from cosim.formats.chakra.et_def_pb2 import Node, NodeType
from cosim.formats.chakra.file import read_trace
from cosim.formats.chakra.folder import rank_files
from cosim.formats.chakra.read_nodes import dependencies
from cosim.units import NEVER, PS_PER_NS, PS_PER_US

_KINDS = {NodeType.COMM_SEND_NODE: "send", NodeType.COMM_RECV_NODE: "recv", NodeType.COMP_NODE: "comp"}


def read_messages(prefix: Path) -> list[dict[str, list[Any]]]:
    """One dict of equally long lists for each rank, in ascending order of node id.

    ``id``: node id; ``kind``: ``"send"``, ``"recv"`` or ``"comp"``; ``peer``: rank (-1 for comp); ``tag``;
    ``bytes``; ``duration_ps`` (comp: 1 ns where the file says 0, as ASTRA-sim); ``name``; ``deps``: node
    *ids*, each a sorted tuple, data and control dependencies as in FeederV3. No dependency dangles, and there
    is no cycle.

    Raises
    ------
    WorkloadError
        A file that is missing or broken, another node type, a SEND or RECV of another rank; names file and
        node.
    """
    files = rank_files(prefix)
    return [_columns(rank, len(files), file) for rank, file in enumerate(files)]


def _columns(rank: int, num_ranks: int, file: Path) -> dict[str, list[Any]]:
    ordered = sorted(read_trace(file)[1], key=lambda node: node.id)
    deps = dependencies(ordered, str(file), ctrl_deps=True)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("id", "kind", "peer", "tag", "bytes", "duration_ps", "name", "deps")
    }
    for node, before in zip(ordered, deps, strict=True):
        row = _row(node, rank, num_ranks, str(file))
        row["deps"] = tuple(ordered[number].id for number in before)
        for name, column in columns.items():
            column.append(row[name])
    return columns


def _row(node: Node, rank: int, num_ranks: int, file: str) -> dict[str, Any]:
    kind = next((name for value, name in _KINDS.items() if value == node.type), None)
    if kind is None:
        raise node_error(
            file, node, f"type {node.type}: a collective is made of SEND, RECV and COMP nodes only"
        )
    row: dict[str, Any] = {"id": node.id, "kind": kind, "name": node.name}
    if kind == "comp":
        duration = node.duration_micros * PS_PER_US or PS_PER_NS
        if duration > NEVER:
            raise node_error(file, node, f"duration_micros {node.duration_micros} is above 53 days")
        return {**row, "peer": -1, "tag": 0, "bytes": 0, "duration_ps": duration}
    attributes = Attributes(node, file)
    own, other = ("comm_src", "comm_dst") if kind == "send" else ("comm_dst", "comm_src")
    mine, peer = attributes.integer(own), attributes.integer(other)
    size = attributes.integer("comm_size")
    if mine is not None and mine != rank:
        raise attributes.error(f"{own} is {mine}, but the file is rank {rank}'s")
    if peer is None or not 0 <= peer < num_ranks or peer == rank:
        raise attributes.error(f"{other} is {peer}; it should be another of the {num_ranks} ranks")
    if size is None or not 0 <= size <= NEVER:
        raise attributes.error(f"comm_size is {size}; it should be a number of bytes")
    return {
        **row,
        "peer": peer,
        "tag": attributes.integer("comm_tag") or 0,
        "bytes": size,
        "duration_ps": 0,
    }
