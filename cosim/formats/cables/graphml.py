"""GraphML: nodes and edges with attributes, as networkx, yEd and others write it.

A node is called by its `label` or `name`, else by its id; `role`, `type` or `kind` may say what it is
(host, gpu, leaf ...). An edge may have `rate`, `speed` or `bandwidth`, `latency` or `delay`, and `count`.
Directed graphs that list both directions have each cable once.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.located_xml import read_xml
from cosim.formats.cables.columns import COUNT, LATENCY, RATE, ROLE, is_one_of, plain, role_of
from cosim.formats.cables.rates import latency_of, rate_of, times_of
from cosim.topology.file_format import Cables, TopologyFormat

_LABELS = ("label", "name")
_MEANINGS = (("rate", RATE), ("latency", LATENCY), ("count", COUNT))


class GraphMl(TopologyFormat):
    """GraphML: nodes and edges with attributes"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        return None if "<graphml" in start else "it has no <graphml>"

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        import networkx as nx

        read_xml(path, TopologyError)  # which says the line of what is no XML
        try:
            graph = nx.read_graphml(path, force_multigraph=True)
        except (
            nx.NetworkXException,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            StopIteration,
            SyntaxError,  # of its second attempt, on a namespace that is none
        ) as problem:
            raise cables.wrong(f"not GraphML: {problem}") from None
        called: dict[Any, str] = {}
        for node, given in graph.nodes(data=True):
            data = _data(given)
            name = next((data[label] for label in _LABELS if data.get(label)), str(node))
            called[node] = name if name not in cables.roles else f"{name} ({node})"
            roles = (role_of(text) for key, text in data.items() if key in ROLE)
            cables.node(called[node], next((role for role in roles if role), None))
            for key in data.keys() - set(_LABELS) - set(ROLE):
                report.ignored(f"{key} of a node")
        back: Counter[tuple[Any, Any, str]] = Counter()
        for one, two, given in graph.edges(data=True):
            data = _data(given)
            text = repr(sorted(data.items()))
            if graph.is_directed():
                if back[two, one, text]:
                    back[two, one, text] -= 1
                    continue
                back[one, two, text] += 1
            _cable(called[one], called[two], data, cables, report)


def _cable(one: str, two: str, data: dict[str, str], cables: Cables, report: ReportBuilder) -> None:
    said = {"rate": ("", ""), "latency": ("", ""), "count": ("", "")}
    for key, value in data.items():
        what = next((what for what, known in _MEANINGS if is_one_of(key, known)), None)
        if what is None:
            report.ignored(f"{key} of an edge")
        else:
            said[what] = (value, key)
    try:
        rate, latency = rate_of(*said["rate"]), latency_of(*said["latency"])
        times = times_of(said["count"][0])
    except ValueError as problem:
        raise cables.wrong(f"edge from {one} to {two}: {problem}") from None
    for _ in range(times):
        cables.link(one, two, rate_bps=rate, latency_ps=latency)


def _data(given: dict[str, Any]) -> dict[str, str]:
    """Attributes by their plain names."""
    return {plain(str(key)): str(value).strip() for key, value in given.items()}
