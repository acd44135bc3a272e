"""``topology.txt`` of HPCC's, ConWeave's and SimAI's ns-3.

::

    66 1 65                    # nodes, switches, links
    0                          # numbers of the switches
    0 1 100Gbps 0.001ms 0      # src dst rate delay error_rate

SimAI's first line is ``nodes gpus_per_server nvswitches switches links gpu_type``, and NVSwitches come first
among the switches. Whatever follows the links is prose, as in HPCC's own file. Nodes that are no switches
are endpoints, by number; links of an NVSwitch are scale-up. Sources: ``scratch/third.cc`` of
High-Precision-Congestion-Control, ``scratch/network-load-balance.cc`` of conweave-ns3,
``astra-sim-alibabacloud/inputs/topo/gen_Topo_Template.py`` of SimAI.

Not modelled: error rates of links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import read_text
from cosim.topology.file_format import Cables, TopologyFormat
from cosim.units import parse_rate, parse_time

_SHORT, _LONG = 3, 6
_LINK = 5
_MOST = 1 << 20
_Lines = Iterator[tuple[int | None, list[str]]]
_END: tuple[int | None, list[str]] = (None, [])


@dataclass(frozen=True, slots=True)
class _TopologyHeader:
    nodes: int
    switches: int
    links: int
    nvswitches: int = 0
    gpus: int = 0


class Ns3Topology(TopologyFormat):
    """topology.txt of HPCC, ConWeave and SimAI (ns-3): nodes, switches, links"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        lines = [line.split() for line in start.splitlines() if line.strip()]
        if not lines or _header(lines[0]) is None:
            return "its first line isn't: nodes switches links, nor SimAI's six"
        return None

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        text = read_text(path, TopologyError).splitlines()
        lines: _Lines = ((number, line.split()) for number, line in enumerate(text, 1) if line.strip())
        number, tokens = next(lines, _END)
        header = _header(tokens)
        if header is None:
            raise cables.wrong(
                f"begins with {' '.join(tokens)[:60]!r}", number, "nodes switches links, as in 66 1 65"
            )
        if not header.switches < header.nodes <= _MOST:
            raise cables.wrong(
                f"{header.nodes} nodes, {header.switches} of them switches",
                number,
                "more nodes than switches",
            )
        switches = self._switches(header, lines, cables)
        for node in range(header.nodes):
            cables.node(str(node), "switch" if node in switches else "endpoint")
        nvswitches = set(list(switches)[: header.nvswitches])
        for found in range(header.links):
            line, tokens = next(lines, _END)
            if not tokens:
                raise cables.wrong(f"ends after {found} of {header.links} links", line, "is it complete?")
            self._link(line, tokens, header, nvswitches, cables, report)
        rest = sum(1 for _ in lines)
        report.ignored("line behind the links", rest)
        if header.gpus:
            report.ignored("GPUs of a server and their type")

    @staticmethod
    def _switches(header: _TopologyHeader, lines: _Lines, cables: Cables) -> dict[int, None]:
        """Numbers of the switches, in order; they may stand on several lines."""
        switches: dict[int, None] = {}
        while len(switches) < header.switches:
            line, tokens = next(lines, _END)
            if not tokens:
                raise cables.wrong(f"ends after {len(switches)} of {header.switches} switches", line)
            for token in tokens:
                value = _whole(token)
                if value is None or value >= header.nodes or value in switches:
                    raise cables.wrong(
                        f"{token[:40]!r} among the switches",
                        line,
                        f"numbers from 0 to {header.nodes - 1}, each once",
                    )
                switches[value] = None
        if len(switches) > header.switches:
            raise cables.wrong(
                f"lists {len(switches)} switches, and the first line says {header.switches}",
                None,
                "correct it",
            )
        return switches

    @staticmethod
    def _link(
        line: int | None,
        tokens: list[str],
        header: _TopologyHeader,
        nvswitches: set[int],
        cables: Cables,
        report: ReportBuilder,
    ) -> None:
        ends = [_whole(token) for token in tokens[:2]]
        try:
            if len(tokens) != _LINK:
                raise ValueError
            one, two = (end for end in ends if end is not None and end < header.nodes)
            rate, delay, error = parse_rate(tokens[2]), parse_time(tokens[3]), float(tokens[4])
        except ValueError:
            raise cables.wrong(
                f"{' '.join(tokens)[:60]!r}",
                line,
                f"src dst rate delay error_rate, as in 0 1 100Gbps 0.001ms 0; nodes 0 to {header.nodes - 1}",
            ) from None
        if error:
            report.ignored("error rate of a link above 0")
        inner = one in nvswitches or two in nvswitches
        cables.link(str(one), str(two), rate_bps=rate, latency_ps=delay, scale_up=inner, line=line)


def _header(tokens: list[str]) -> _TopologyHeader | None:
    numbers = [value for value in map(_whole, tokens[:_LINK]) if value is not None]
    if len(tokens) == _SHORT == len(numbers):
        return _TopologyHeader(*numbers)
    if len(tokens) == _LONG and len(numbers) == _LINK and _whole(tokens[-1]) is None:
        nodes, gpus, nvswitches, switches, links = numbers
        return _TopologyHeader(nodes, nvswitches + switches, links, nvswitches, gpus)
    return None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
