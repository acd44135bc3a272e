"""PyTorch's execution trace (ET, once "execution graph"): operators, shapes and collectives of one rank.

Schemas 1.0.x (fields of a node side by side) and 1.1.x (``attrs``, ``ctrl_deps`` is the parent). An ET has no
times. What is kept: each node's name by rf_id, to link Kineto's events by; communications; process groups;
and, for an ET that stands alone, operators with the shapes of their tensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TextIO

from cosim.errors import Location, WorkloadError
from cosim.formats.pytorch.communication import RECORD, RecordedComm, from_node
from cosim.formats.pytorch.json_stream import read_object

_GROUPS = "## process_group:init ##"


@dataclass(frozen=True, slots=True)
class TraceNode:
    """An operator: ``inputs`` and ``outputs`` as the trace has them, with their shapes."""

    number: int
    name: str
    parent: int
    thread: int
    inputs: list[Any]
    input_shapes: list[Any]
    outputs: list[Any]
    output_shapes: list[Any]
    types: list[Any]


@dataclass(slots=True)
class ExecutionTrace:
    """One rank's ET. ``comms`` by node; ``nodes`` only where asked for."""

    file: str
    schema: str = ""
    pid: int | None = None
    count: int = 0
    names: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    """rf_id -> (node, name, thread)."""
    comms: dict[int, RecordedComm] = field(default_factory=dict)
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Process groups with ranks; () is all ranks."""
    nodes: list[TraceNode] = field(default_factory=list)


def read(text: TextIO, file: str, *, keep_nodes: bool) -> ExecutionTrace:
    """Read an ET.

    Raises
    ------
    WorkloadError
        Not an ET, or a schema that isn't known; names the node.
    """
    trace = ExecutionTrace(file)
    seen: set[int] = set()
    for key, index, value in read_object(text, file, frozenset({"nodes"})):
        if key == "nodes":
            _node(trace, value, Location(file, key=f"nodes[{index}]"), seen, keep_nodes)
        elif key == "schema":
            trace.schema = _schema(value, file)
        elif key == "pid" and type(value) is int:
            trace.pid = value
        elif key == "traceEvents":
            raise WorkloadError(
                "is a Kineto trace, not an ET", location=Location(file), hint="give it as `kineto:`"
            )
    if not trace.count:
        raise WorkloadError(
            "has no nodes", location=Location(file), hint="an ET is what ExecutionTraceObserver writes"
        )
    return trace


def _schema(value: Any, file: str) -> str:
    schema = str(value)
    if not schema.startswith(("1.0", "1.1")):
        raise WorkloadError(
            f"schema is {schema[:40]!r}",
            location=Location(file, key="schema"),
            hint="known are 1.0.x and 1.1.x",
        )
    return schema


def _node(trace: ExecutionTrace, value: Any, place: Location, seen: set[int], keep: bool) -> None:
    if not isinstance(value, dict):
        raise WorkloadError(f"is {str(value)[:40]!r}; a node should be an object", location=place)
    number, name = value.get("id"), value.get("name")
    if type(number) is not int or not isinstance(name, str):
        raise WorkloadError(f"id is {str(number)[:40]!r}, name {str(name)[:40]!r}", location=place)
    place = Location(trace.file, key=f"node {number} {name[:60]!r}")
    if number in seen:
        raise WorkloadError(f"node id {number} is there twice", location=place)
    seen.add(number)
    trace.count += 1
    attributes = _attributes(value, place)
    rf_id, thread = attributes.get("rf_id"), attributes.get("tid")
    thread = thread if type(thread) is int else 0
    if type(rf_id) is int:
        trace.names[rf_id] = (number, name, thread)
    if name not in (RECORD, _GROUPS) and not keep:
        return
    inputs, input_shapes, types = _side(value, "input", place)
    outputs, output_shapes, _ = _side(value, "output", place)
    if name == RECORD:
        trace.comms[number] = from_node(inputs, outputs, attributes, place)
    elif name == _GROUPS:
        trace.groups.update(_groups(inputs, place))
    if keep:
        parent = value.get("ctrl_deps", value.get("parent"))
        trace.nodes.append(
            TraceNode(
                number,
                name,
                parent if type(parent) is int else 0,
                thread,
                inputs,
                input_shapes,
                outputs,
                output_shapes,
                types,
            )
        )


def _attributes(value: Mapping[str, Any], place: Location) -> Mapping[str, Any]:
    """1.1's list of attributes as a mapping; 1.0's node itself."""
    if "attrs" not in value:
        return value
    listed = value["attrs"]
    if not isinstance(listed, list) or not all(isinstance(item, dict) and "name" in item for item in listed):
        raise WorkloadError(f"attrs are {str(listed)[:60]}; they should be a list of objects", location=place)
    return {str(item["name"]): item.get("value") for item in listed}


def _side(value: Mapping[str, Any], side: str, place: Location) -> tuple[list[Any], list[Any], list[Any]]:
    """Values, shapes and types of a node's inputs or outputs."""
    found = value.get(f"{side}s", [])
    if isinstance(found, dict):
        parts = [found.get(name, []) for name in ("values", "shapes", "types")]
    else:
        parts = [found, value.get(f"{side}_shapes", []), value.get(f"{side}_types", [])]
    if not all(isinstance(part, list) for part in parts):
        raise WorkloadError(f"{side}s are {str(found)[:60]}; they should be lists", location=place)
    return parts[0], parts[1], parts[2]


def _groups(inputs: list[Any], place: Location) -> dict[str, tuple[int, ...]]:
    groups: dict[str, tuple[int, ...]] = {}
    for text in inputs:
        try:
            listed = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise WorkloadError(f"process groups that aren't JSON: {error}", location=place) from None
        for item in listed if isinstance(listed, list) else [listed]:
            ranks = item.get("ranks", []) if isinstance(item, dict) else None
            if not isinstance(ranks, list) or not all(type(rank) is int and rank >= 0 for rank in ranks):
                raise WorkloadError(f"the process group {str(item)[:80]}", location=place)
            groups[str(item.get("pg_name", ""))] = tuple(ranks)
    return groups
