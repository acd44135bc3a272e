"""PipeDream's ``graph.txt``: what its profiler measured of each layer, and who reads whose output.

A line for each layer, and an indented one for each edge::

    node2 -- Linear(10, 10) -- forward_compute_time=1.5, backward_compute_time=3.0, activation_size=80.0, \
parameter_size=440.000
        node1 -- node2

Times are milliseconds of a minibatch, sizes bytes; several outputs are written ``[80.0; 8.0]``, a stage that
somebody has chosen ``-- stage_id=1`` behind it, which isn't read. Nodes named ``Input`` are no layers.
Source: PipeDream (SOSP 2019), ``profiler/torchmodules/torchgraph/graph.py``, whose form it is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from cosim.errors import Location, WorkloadError
from cosim.files.text import lines_of
from cosim.units import LARGEST, PS_PER_MS
from cosim.workload.layers.profile import LayerProfile, ProfiledLayer, in_order

_FIELDS = "forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"
_EDGE = re.compile(r"\s+(\S+) -- (\S+)\s*")
_NODE = re.compile(r"(\S+) -- (.*?) -- (\w+=.*?)(?: -- stage_id=\d+)?\s*")
_FORM = "a layer is `NODE -- WHAT -- " + ", ".join(f"{name}=NUMBER" for name in _FIELDS) + "`"
_MOST_LAYERS = 2000
"""The partitioner tries every cut for every number of workers: quadratic in these."""


@dataclass(slots=True)
class _ReadSoFar:
    """What was read so far: layers and their lines by name, edges with their lines."""

    path: Path
    layers: dict[str, ProfiledLayer | None] = field(default_factory=dict)
    edges: list[tuple[int, str, str]] = field(default_factory=list)

    def error(self, line: int | None, message: str, hint: str | None = None) -> WorkloadError:
        return WorkloadError(message, location=Location(str(self.path), line), hint=hint)


def read_graph(path: Path) -> LayerProfile:
    """The layers of a file.

    Raises
    ------
    WorkloadError
        Not such a file, a number that can't be meant, an edge to nowhere, a cycle; with the line.
    """
    graph = _ReadSoFar(path)
    for number, line in lines_of(path):
        if not line.strip():
            continue
        if line[0].isspace():
            _read_edge(graph, number, line)
        else:
            _read_node(graph, number, line)
    return _profile(graph)


def _read_edge(graph: _ReadSoFar, number: int, line: str) -> None:
    found = _EDGE.fullmatch(line)
    if found is None:
        raise graph.error(number, f"{line.strip()[:60]!r} is no edge", "an edge is `NODE -- NODE`, indented")
    graph.edges.append((number, found[1], found[2]))


def _read_node(graph: _ReadSoFar, number: int, line: str) -> None:
    found = _NODE.fullmatch(line)
    if found is None:
        raise graph.error(number, f"{line[:60]!r} is no layer", _FORM)
    node, what, numbers = found.groups()
    if node in graph.layers:
        raise graph.error(number, f"there is a {node} before it", "each layer has a name of its own")
    said: dict[str, str] = {}
    for part in numbers.split(", "):
        name, _, value = part.partition("=")
        if name in said or name not in _FIELDS:
            raise graph.error(number, f"{node}: {part[:60]!r} is not expected here", _FORM)
        said[name] = value
    missing = [name for name in _FIELDS if name not in said]
    if missing:
        raise graph.error(number, f"{node}: {', '.join(missing)} is missing", _FORM)
    forward, backward, output, weights = (_number(graph, number, node, name, said[name]) for name in _FIELDS)
    layer = ProfiledLayer(
        f"{node} {what}"[:80],
        round(forward * PS_PER_MS),
        round(backward * PS_PER_MS),
        round(output),
        round(weights),
    )
    graph.layers[node] = None if what.startswith("Input") else layer


def _number(graph: _ReadSoFar, line: int, node: str, name: str, text: str) -> float:
    """A number, or the sum of several."""
    parts = text[1:-1].split(";") if text.startswith("[") and text.endswith("]") else [text]
    most = LARGEST / PS_PER_MS if name.endswith("time") else float(LARGEST)
    total = 0.0
    for part in parts:
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 0 <= value <= most:
            raise graph.error(
                line, f"{node}: {name} is {text[:40]!r}", f"a number from 0 to {most:.4g}, or [NUMBER; ...]"
            )
        total += value
    return min(total, most)


def _profile(graph: _ReadSoFar) -> LayerProfile:
    names = [name for name, layer in graph.layers.items() if layer is not None]
    if not names:
        raise graph.error(None, "has no layer", _FORM)
    if len(names) > _MOST_LAYERS:
        raise graph.error(None, f"has {len(names)} layers; up to {_MOST_LAYERS} are cut into stages")
    place = {name: k for k, name in enumerate(names)}
    reads: list[set[int]] = [set() for _ in names]
    for line, before, after in graph.edges:
        for name in (before, after):
            if name not in graph.layers:
                raise graph.error(line, f"there is no {name}", "an edge joins two layers of the file")
        if before in place and after in place:
            reads[place[after]].add(place[before])
    layers = [layer for layer in graph.layers.values() if layer is not None]
    try:
        return in_order(graph.path.stem, layers, [sorted(one) for one in reads])
    except WorkloadError as error:
        raise graph.error(None, error.message, "a layer reads only what is computed before it") from None
