"""InfraGraph: a data centre as devices, instances and edges, in YAML (github.com/Keysight/infragraph).

Components of type xpu become endpoints, in the order of instances and indices; all others forward. What a
link can carry is often left out of such files: ``rates`` and ``latencies`` say it by link (``pcie``, or
``DEVICE.pcie`` where devices differ), ``rate`` and ``latency`` for all the others. InfraGraph doesn't say
whether a bandwidth is one way or both; here it is each way. Giga transfers a second are no rate without the
number of lanes and their code, so such a link needs an entry in ``rates``.

Not modelled: what happens inside a component, external cabling beyond its link.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

from cosim.context import Context
from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.formats.infragraph.mapping import Map, read_located
from cosim.formats.infragraph.model import Infrastructure
from cosim.formats.infragraph.parts import Joined
from cosim.registry import nearest
from cosim.topology.builder import Builder
from cosim.topology.contract import Latency, Rate, TopologySpec
from cosim.topology.graph import Topology
from cosim.units import PS_PER_MS, PS_PER_NS, PS_PER_US

_BANDWIDTHS = {
    "gigabits_per_second": 1e9,
    "giga_bits_per_second": 1e9,
    "gigabytes_per_second": 8e9,
    "giga_bytes_per_second": 8e9,
}
_TRANSFERS = ("gigatransfers_per_second", "giga_transfers_per_second")
_TIMES = {"ms": PS_PER_MS, "us": PS_PER_US, "ns": PS_PER_NS}

Files = Annotated[
    tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v), Field(min_length=1)
]


class InfraGraph(TopologySpec):
    """InfraGraph YAML: devices, instances and edges"""

    file: Files = Field(description="The YAML file, or a list where devices and fabric are in several.")
    endpoints: str = Field("xpu", description="Type of the components that host a rank.")
    rates: dict[str, Rate] = Field({}, description="Rate of a link by name, per direction; beats the file's.")
    latencies: dict[str, Latency] = Field({}, description="Latency of a link by name; beats the file's.")
    rate: Rate | None = Field(None, description="Rate of links that neither rates nor the file says.")
    latency: Latency = Field(0, description="Latency of links that neither latencies nor the file says.")
    instances: dict[str, str] = Field({}, description="Instances that the files lack: NAME: DEVICE.")
    endpoints_forward: bool = Field(False, description="Paths may pass through endpoints.")

    def build(self, context: Context) -> Topology:
        """The topology.

        Raises
        ------
        TopologyError
            A file that can't be read or is wrong, with its line; links whose rate nobody says.
        """
        report = ReportBuilder()
        files = [read_located(file, context.base) for file in self.file]
        found = Infrastructure(files, self.instances, report)
        nodes, edges = found.expand()
        hosts = [name for name, kind in nodes if kind == self.endpoints]
        if not hosts:
            kinds = ", ".join(sorted({kind for _, kind in nodes})) or "none"
            raise files[0].error(
                f"no component is of type {self.endpoints}, so nothing hosts a rank; types: {kinds}",
                hint="endpoints: TYPE says which do",
            )
        builder = Builder(hosts)
        builder.add_switches(name for name, kind in nodes if kind != self.endpoints)
        number = {name: i for i, name in enumerate(builder.names)}
        links = self._links(found, edges, report)
        ends: dict[str, tuple[list[int], list[int]]] = {link: ([], []) for link in links}
        for one, two, link, _ in edges:
            ends[link][0].append(number[one])
            ends[link][1].append(number[two])
        for link, (rate, latency) in links.items():
            builder.connect(*ends[link], rate, latency)
        for kind, count in Counter(kind for _, kind in nodes).items():
            report.read(kind, count)
        report.read("link", len(edges))
        report.assumed("bandwidths are each way: InfraGraph doesn't say")
        name = f"infragraph {Path(self.file[0]).stem}"
        return builder.topology(
            name, self.routing, context, endpoints_forward=self.endpoints_forward, info=report.as_dict()
        )

    def _links(
        self, found: Infrastructure, edges: list[Joined], report: ReportBuilder
    ) -> dict[str, tuple[float, int]]:
        """Rate and latency of every link that an edge uses."""
        used = {link: edge for _, _, link, edge in edges}
        short = {link.rsplit(".", 1)[-1] for link in used}
        for name in (*self.rates, *self.latencies):
            if name not in used and name not in short:
                raise TopologyError(
                    f"rates and latencies: no link {name!r} is used{nearest(name, [*used, *short])}; there "
                    f"are: {', '.join(used)}"
                )
        links: dict[str, tuple[float, int]] = {}
        lacking: list[str] = []
        for link in used:
            device, _, bare = link.rpartition(".")
            said = found.devices[device].links[bare] if device else found.links[bare]
            rate = self._rate(link, bare, said, report)
            if rate is None:
                lacking.append(link)
                continue
            latency = self.latencies.get(link, self.latencies.get(bare))
            if latency is None:
                latency = _latency(said)
            if latency is None:
                latency = self.latency
                if "latency" not in self.model_fields_set:
                    report.assumed(
                        f"no latency of link {link}: the file has none (latencies: {{{bare}: ...}})"
                    )
            links[link] = rate, latency
        if lacking:
            first = lacking[0].rpartition(".")
            where = found.devices[first[0]].links[first[2]] if first[0] else found.links[first[2]]
            raise where.error(
                f"no bandwidth is given for link{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}",
                hint=f"say it in the scenario: rates: {{{first[2]}: 200Gbps}}, or rate: for all of them",
            )
        return links

    def _rate(self, link: str, bare: str, said: Map, report: ReportBuilder) -> float | None:
        given = self.rates.get(link, self.rates.get(bare))
        if given is not None:
            return given
        bandwidth = (said.map("physical") or said).map("bandwidth")
        if bandwidth is not None:
            for unit, scale in _BANDWIDTHS.items():
                if unit in bandwidth:
                    return bandwidth.number(unit) * scale
            if not any(unit in bandwidth for unit in _TRANSFERS):
                have = ", ".join(bandwidth) or "nothing"
                raise bandwidth.error(f"has {have}; a bandwidth is one of {', '.join(_BANDWIDTHS)}")
            if self.rate is not None:
                report.ignored(f"GT/s of link {link}, which are no rate without lanes")
        if self.rate is not None:
            report.assumed(f"rate of link {link}: the scenario's rate")
        return self.rate


def _latency(said: Map) -> int | None:
    latency = (said.map("physical") or said).map("latency")
    if latency is None:
        return None
    for unit, scale in _TIMES.items():
        if unit in latency:
            value = latency.number(unit) if latency.text(unit) not in ("0", "0.0") else 0.0
            picoseconds = round(value * scale)
            if picoseconds > PS_PER_MS * 1000:
                raise latency.error("a latency above a second", unit)
            return picoseconds
    raise latency.error(f"has {', '.join(latency) or 'nothing'}; a latency is one of ms, us, ns")
