"""Explicit graphs: nodes and links as a scenario, a YAML file or a networkx graph lists them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.files.located_yaml import read_model
from cosim.registry import located, nearest
from cosim.spec import Spec
from cosim.topology.builder import Builder
from cosim.topology.contract import Count, Latency, Rate, RoutingSpec, TopologySpec
from cosim.topology.graph import Topology
from cosim.topology.routings import ShortestSpec

if TYPE_CHECKING:
    import networkx as nx

NodeName = Annotated[str, BeforeValidator(lambda v: str(v) if type(v) is int else v), Field(min_length=1)]


class Link(Spec):
    """A link of an explicit graph."""

    model_config = ConfigDict(populate_by_name=True)

    from_: NodeName = Field(alias="from", description="Node that it leaves.")
    to: NodeName = Field(description="Node that it reaches.")
    rate: Rate = Field(description="Rate, per direction.")
    latency: Latency = Field(description="Latency.")
    bidirectional: bool = Field(True, description="One link each way, or only from -> to.")
    cost: Count = Field(1, description="What routing counts it as; hops are 1.")
    scale_up: bool = Field(
        False, description="It is within a scale-up domain (NVLink); network: hybrid asks."
    )


class GraphFile(Spec):
    """The keys of a graph file: endpoints, switches and links."""

    endpoints: list[NodeName] = Field(min_length=1, description="Names of the endpoints, in rank order.")
    switches: list[NodeName] = Field([], description="Names of the nodes that only forward.")
    links: list[Link] = Field([], description="{from, to, rate, latency, bidirectional, cost} each.")
    endpoints_forward: bool = Field(False, description="Paths may pass through endpoints.")

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        _check_names(self.endpoints, self.switches, self.links)
        return self


def _check_names(endpoints: list[str], switches: list[str], links: list[Link]) -> None:
    errors: list[tuple[tuple[str | int, ...], str, Any]] = []
    for name, count in Counter([*endpoints, *switches]).items():
        if count > 1:
            place = ("endpoints",) if name in endpoints else ("switches",)
            errors.append((place, f"{count} nodes are named {name!r}; a name is for one node", name))
    known = {*endpoints, *switches}
    for number, link in enumerate(links):
        for key, name in (("from", link.from_), ("to", link.to)):
            if name not in known:
                text = f"no node is named {name!r}{nearest(name, sorted(known))}"
                errors.append((("links", number, key), text, name))
        if link.from_ == link.to:
            text = f"a link from {link.from_!r} to itself; a link joins two nodes"
            errors.append((("links", number), text, link.to))
    if errors:
        raise located("graph", errors)


class Graph(TopologySpec):
    """Any graph: endpoints, switches and links listed in the scenario or in a YAML file."""

    endpoints: list[NodeName] = Field([], description="Names of the endpoints, in rank order.")
    switches: list[NodeName] = Field([], description="Names of the nodes that only forward.")
    links: list[Link] = Field([], description="{from, to, rate, latency, bidirectional, cost} each.")
    endpoints_forward: bool = Field(False, description="Paths may pass through endpoints.")
    file: str | None = Field(None, description="YAML file with these keys, instead of them.")

    @model_validator(mode="after")
    def _inline_or_file(self) -> Self:
        given = sorted(set(GraphFile.model_fields) & self.model_fields_set)
        if self.file is not None and given:
            raise ValueError(f"file and {', '.join(given)} are both given; give the file or the lists")
        if self.file is None:
            if not self.endpoints:
                raise ValueError("a graph needs endpoints (with switches and links), or a file that has them")
            _check_names(self.endpoints, self.switches, self.links)
        return self

    def build(self, context: Context) -> Topology:
        """The topology, its links numbered as listed, each followed by its way back.

        Raises
        ------
        TopologyError
            The file can't be read, or is wrong; says where.
        """
        found: Graph | GraphFile = (
            self if self.file is None else read_model(context.base / self.file, GraphFile, TopologyError)
        )
        builder = Builder(found.endpoints)
        builder.add_switches(found.switches)
        number = {name: i for i, name in enumerate(builder.names)}
        for link in found.links:
            add = builder.connect if link.bidirectional else builder.link
            ends = number[link.from_], number[link.to]
            add(*ends, link.rate, link.latency, link.cost, scale_up=link.scale_up)
        name = "graph" if self.file is None else f"graph {Path(self.file).stem}"
        return builder.topology(name, self.routing, context, endpoints_forward=found.endpoints_forward)


def from_networkx(
    graph: nx.Graph[Any],
    endpoints: Iterable[Hashable],
    *,
    rate: str = "rate_bps",
    latency: str = "latency_ps",
    cost: str | None = None,
    endpoints_forward: bool = False,
    routing: RoutingSpec | None = None,
    seed: int = 0,
    name: str = "graph",
) -> Topology:
    """A topology from a networkx graph: an undirected edge is a link each way, parallel edges are kept.

    Parameters
    ----------
    graph
        Graph, DiGraph, MultiGraph or MultiDiGraph; nodes are named by ``str``.
    endpoints
        Nodes that can host a rank, in rank order; every other node is a switch.
    rate, latency, cost
        Edge attributes: bits per second above zero, whole picoseconds, and (None: 1 each) what routing
        counts an edge as, a whole number above zero.
    endpoints_forward
        Paths may pass through endpoints.
    routing, seed
        Shortest if omitted; the seed is for an ecmp routing without one of its own.
    name
        Of the topology.

    Raises
    ------
    TopologyError
        No endpoints, an endpoint twice or not in the graph, equal names, a self-loop, or an edge attribute
        that is missing or out of range.
    """
    hosts = list(endpoints)
    for node, count in Counter(hosts).items():
        if count > 1 or node not in graph:
            problem = f"is given {count} times" if count > 1 else "is not a node of the graph"
            raise TopologyError(f"endpoint {node!r} {problem}")
    if not hosts:
        raise TopologyError("a topology needs endpoints; name at least one node of the graph")
    chosen = set(hosts)
    order = [*hosts, *(node for node in graph if node not in chosen)]
    twice = [text for text, count in Counter(map(str, order)).items() if count > 1]
    if twice:
        raise TopologyError(f"several nodes are named {twice[0]!r}; names (str of a node) must differ")
    number = {node: i for i, node in enumerate(order)}
    builder = Builder(map(str, hosts))
    builder.add_switches(str(node) for node in order[len(hosts) :])
    for tail, head, found in graph.edges(data=True):
        where = f"edge {tail} -> {head}"
        if tail == head:
            raise TopologyError(f"{where} is a self-loop; a link joins two nodes")
        bps = _attribute(found, rate, where, "bits per second above zero", whole=False, least=0.0)
        delay = _attribute(found, latency, where, "whole picoseconds, zero or more", whole=True, least=0)
        weight = 1 if cost is None else _attribute(found, cost, where, "a whole number", whole=True, least=1)
        add = builder.link if graph.is_directed() else builder.connect
        add(number[tail], number[head], float(bps), int(delay), int(weight))
    return builder.topology(
        name, routing or ShortestSpec(), Context(seed=seed), endpoints_forward=endpoints_forward
    )


def _attribute(found: dict[str, Any], key: str, where: str, what: str, *, whole: bool, least: float) -> float:
    if key not in found:
        have = ", ".join(sorted(map(str, found))) or "none"
        raise TopologyError(f"{where} has no attribute {key!r}, which is {what}; it has: {have}")
    try:
        value = float(found[key])
    except (TypeError, ValueError):
        value = math.nan
    right = value.is_integer() and value >= least if whole else value > least
    if not right or not math.isfinite(value):
        raise TopologyError(f"{where} has {key} = {found[key]!r}; it must be {what}")
    return value
