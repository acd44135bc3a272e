"""Chakra traces as JSON: what ``chakra_jsonizer`` writes, and the graphs that Chakra's feeder reads.

The former is the metadata and the nodes as protobuf's JSON, one object after another. The latter is
``{"workload_graph": [{"Id": 1, "Name": "mm", "NodeType": 4, "data_deps": [], "runtime": 5, ...}]}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict, ParseError

from cosim.errors import Location, WorkloadError
from cosim.files.text import read_text
from cosim.formats.chakra.et_def_pb2 import AttributeProto, GlobalMetadata, Node

_GRAPH = "workload_graph"
_OF_NODE = {
    "Id": "id", "Name": "name", "NodeType": "type", "data_deps": "data_deps", "ctrl_deps": "ctrl_deps",
    "runtime": "duration_micros",
}  # fmt: skip
_OWN = ("id", "name", "type", "duration_micros")


def iter_json_nodes(path: Path, metadata: GlobalMetadata) -> Iterator[Node]:
    """Nodes in file order; ``metadata`` is filled in before the first.

    Raises
    ------
    WorkloadError
        The file can't be read, is no JSON, or an object is no node; says at which line.
    """
    text = read_text(path, WorkloadError)
    decoder, at, count = json.JSONDecoder(), 0, 0
    line, counted = 1, 0
    while (at := _past_space(text, at)) < len(text):
        line, counted = line + text.count("\n", counted, at), at
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as problem:
            place = getattr(problem, "lineno", line)
            raise WorkloadError(f"not JSON: {problem}", location=Location(str(path), place)) from None
        for one in _objects(found):
            is_graph = isinstance(found, dict) and _GRAPH in found
            if count == 0 and not is_graph and isinstance(found, dict) and "id" not in one:
                _parse(one, metadata, path, line)
            else:
                yield _node(one, path, line) if is_graph else _parse(one, Node(), path, line)
            count += 1
        at = end


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at


def _objects(found: Any) -> list[dict[str, Any]]:
    many = found.get(_GRAPH, [found]) if isinstance(found, dict) else found
    return (
        [one if isinstance(one, dict) else {"": one} for one in many]
        if isinstance(many, list)
        else [{"": many}]
    )


def _parse(one: dict[str, Any], message: Any, path: Path, line: int) -> Any:
    try:
        return ParseDict(one, message)
    except (ParseError, ValueError, TypeError, RecursionError, SystemError) as problem:
        half = isinstance(problem, SystemError)  # protobuf's, where an enumeration has such a name
        why = "a name has an unpaired surrogate" if half else str(problem)[:200]
        raise WorkloadError(
            f"no Chakra {type(message).__name__}: {why}", location=Location(str(path), line)
        ) from None


def _node(one: dict[str, Any], path: Path, line: int) -> Node:
    """A node of a workload graph: what isn't the node's own is an attribute."""
    if "" in one:
        raise WorkloadError("workload_graph has no list of nodes", location=Location(str(path), line))
    made = {_OF_NODE[key]: value for key, value in one.items() if key in _OF_NODE}
    made |= {key: one[key] for key in _OWN if key in one}
    node: Node = _parse(made, Node(), path, line)
    for key, value in one.items():
        if key in _OF_NODE or key in _OWN:
            continue
        attribute = _parse({"name": key}, AttributeProto(), path, line)
        if isinstance(value, bool):
            attribute.bool_val = value
        elif isinstance(value, int) and abs(value) < 1 << 63:
            attribute.int64_val = value
        elif isinstance(value, str):
            _parse({"string_val": value}, attribute, path, line)
        elif isinstance(value, list) and value and all(isinstance(each, bool) for each in value):
            attribute.bool_list.values.extend(value)
        elif isinstance(value, float):
            attribute.double_val = value
        else:
            continue
        node.attr.append(attribute)
    return node
