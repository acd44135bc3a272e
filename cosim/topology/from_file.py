"""Kind ``file``: a topology as somebody's file lists it, in whatever format of topologies is known.

The format is found by the file's content (`cosim list "topology format"`), or named by ``format``. Where the
file doesn't say what a node is, ``endpoints`` does; without it nodes with one neighbour are endpoints, and
those that are named alike but for numbers. Endpoints are numbered as names sort, numbers as numbers, unless
the file numbers them.

Not modelled: what the files leave out, which is the inside of hosts as a rule: an endpoint is whatever the
file cables, a host or one of its NICs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import open_regular
from cosim.registry import Named, find, names
from cosim.topology.builder import Builder
from cosim.topology.contract import Latency, Rate, Routing, TopologySpec
from cosim.topology.file_format import Cables, TopologyFormat
from cosim.topology.graph import Topology
from cosim.topology.routings import EcmpSpec

_START_BYTES = 64 << 10
_MOST_NODES = 1 << 20
_SHOWN = 6


class FileTopology(TopologySpec):
    """A topology file of another program: cables, or what a simulator reads"""

    file: str = Field(description="The file; a folder, where each host or switch has a file of its own.")
    format: Annotated[TopologyFormat | None, Named("cosim.topology_formats")] = Field(
        None, description="Of the file; omitted: the one that knows it by its content."
    )
    endpoints: tuple[str, ...] = Field(
        (),
        description="Names or patterns (gpu*) of the endpoints; omitted: as the file says, else nodes "
        "with one neighbour and those named like them.",
    )
    rate: Rate | None = Field(
        None, description="Rate of cables of which the file doesn't say it; omitted: refused."
    )
    latency: Latency = Field(500_000, description="Latency of cables of which the file doesn't say it.")
    routing: Routing = Field(default_factory=EcmpSpec, description="ecmp, shortest, dmodk or by_channel.")

    def build(self, context: Context) -> Topology:
        """The topology.

        Raises
        ------
        TopologyError
            A file that no format reads, or that can't be meant; says where, and what would do.
        """
        path = context.base / self.file
        report, cables = ReportBuilder(), Cables(str(path))
        chosen = self.format if self.format is not None else _known_format(path)
        chosen.read(path, cables, report)
        endpoints = self._endpoints(cables, report)
        if not cables.cables and len(cables.roles) > 1:
            raise cables.wrong("lists no cables")
        if len(cables.roles) > _MOST_NODES:
            raise cables.wrong(f"has {len(cables.roles)} nodes; {_MOST_NODES} are read at most")
        builder = Builder(endpoints)
        among = set(endpoints)
        builder.add_switches(name for name in cables.roles if name not in among)
        number = {name: k for k, name in enumerate(builder.names)}
        self._fill(builder, cables, number, report)
        report.read("endpoint", len(endpoints))
        report.read("switch", len(cables.roles) - len(endpoints))
        report.read("cable", len(cables.cables))
        forward = _linked_directly(cables, among)
        if forward:
            report.assumed("endpoints forward: some reach others over endpoints only")
        return builder.topology(
            path.stem, self.routing, context, endpoints_forward=forward, info=report.as_dict()
        )

    def _endpoints(self, cables: Cables, report: ReportBuilder) -> list[str]:
        """Names of the endpoints, in rank order."""
        said = [name for name, role in cables.roles.items() if role == "endpoint"]
        if self.endpoints:
            for pattern in self.endpoints:
                if not any(fnmatchcase(name, pattern) for name in cables.roles):
                    raise cables.wrong(
                        f"no node is named {pattern!r}; there are {_some(cables.roles)}",
                        hint="endpoints: [...]",
                    )
            chosen = [name for name in cables.roles if any(fnmatchcase(name, one) for one in self.endpoints)]
            return sorted(chosen, key=natural)
        if said:
            return said
        open_ = [name for name, role in cables.roles.items() if role is None]
        neighbours: dict[str, set[str]] = defaultdict(set)
        for cable in cables.cables:
            neighbours[cable.one].add(cable.two)
            neighbours[cable.two].add(cable.one)
        stems = {_stem(name) for name in open_ if len(neighbours[name]) == 1}
        found = sorted((name for name in open_ if _stem(name) in stems), key=natural)
        if not found or len(found) == len(cables.roles) > 2:
            raise cables.wrong(
                f"doesn't say which nodes are endpoints; it has {_some(cables.roles)}",
                hint="endpoints: [PATTERN ...], as in endpoints: ['gpu*']",
            )
        report.assumed(f"endpoints: {_some(found)}, which have one neighbour or are named like those")
        return found

    def _fill(self, builder: Builder, cables: Cables, number: dict[str, int], report: ReportBuilder) -> None:
        """Links both ways."""
        for cable in cables.cables:
            rate = cable.rate_bps
            if rate is None:
                if self.rate is None:
                    raise cables.wrong(
                        f"doesn't say the rate of the cable from {cable.one} to {cable.two}",
                        hint="rate: 400Gbps, of all cables of which it says none",
                    )
                rate = self.rate
                report.assumed("rate of a cable without one (rate)")
            if cable.latency_ps is None:
                report.assumed("latency of a cable without one (latency)")
            latency = self.latency if cable.latency_ps is None else cable.latency_ps
            back = latency if cable.back_ps is None else cable.back_ps
            one, two = number[cable.one], number[cable.two]
            builder.link(one, two, rate, latency, scale_up=cable.scale_up)
            builder.link(two, one, rate, back, scale_up=cable.scale_up)


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which names sort as people do: gpu2 before gpu10."""
    return tuple(
        (1, int(part), "") if part.isdigit() and part.isascii() and len(part) < _LONG else (0, 0, part)
        for part in re.split(r"([0-9]+)", name)
        if part
    )


_LONG = 20


def _stem(name: str) -> str:
    return re.sub(r"[0-9]+", "#", name)


def _some(found: object) -> str:
    listed = list(found)  # type: ignore[call-overload]
    return ", ".join(listed[:_SHOWN]) + (f" ... ({len(listed)})" if len(listed) > _SHOWN else "")


def _linked_directly(cables: Cables, among: set[str]) -> bool:
    """No switch at all, and cables between endpoints."""
    return len(among) == len(cables.roles) and len(among) > 2


def _known_format(path: Path) -> TopologyFormat:
    """The format that knows a file.

    Raises
    ------
    TopologyError
        None does, each with its reason, or several do.
    """
    first = path
    try:
        if path.is_dir():
            first = min(one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
        with open_regular(first, TopologyError) as file:
            start = (file.read(_START_BYTES) or b"").decode("utf-8", "replace")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "the folder has no file"
        raise TopologyError(f"can't read {path}: {reason}") from None
    start = start.replace("\r\n", "\n").removeprefix("\ufeff")
    reasons: dict[str, str] = {}
    fitting: dict[str, TopologyFormat] = {}
    for name in names("cosim.topology_formats"):
        one: TopologyFormat = find("cosim.topology_formats", name)()
        reason = one.refuses(start, path)
        if reason is None:
            fitting[name] = one
        else:
            reasons[name] = reason
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if fitting:
        raise TopologyError(f"{path} could be {' or '.join(fitting)}", hint="format: NAME says which")
    listed = "".join(f"\n  {name}: {reason}" for name, reason in reasons.items())
    raise TopologyError(
        f"no format knows {path}:{listed}",
        hint="format: NAME, or a plug-in: format: {plugin: 'my_format.py:MyFormat'}",
    )
