"""``ibnetdiscover``: switches, channel adapters and the ports that join them, as InfiniBand finds them.

::

    Switch  40 "S-b8599f0300e3a34c"    # "leaf1" enhanced port 0 lid 5 lmc 0
    [1]     "H-b8599f03000aabb0"[1](b8599f03000aabb0)    # "host1 HCA-1" lid 10 4xHDR
    Ca      1 "H-b8599f03000aabb0"     # "host1 HCA-1"
    [1](b8599f03000aabb0)    "S-b8599f0300e3a34c"[1]     # lid 10 lmc 0 "leaf1" lid 5 4xHDR

Each channel adapter is an endpoint: a NIC, which serves a GPU where there is one for each. A link is listed
at both ends and counts once. Its rate is width times what a lane carries (SDR 2, DDR 4, QDR 8, FDR 13.64, EDR
25, HDR 50, NDR 100, XDR 200 Gbit/s). Source: ibnetdiscover(8) of rdma-core (infiniband-diags).
"""

from __future__ import annotations

import re
from pathlib import Path

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import read_text
from cosim.formats.cables.rates import port_rate
from cosim.topology.file_format import Cables, Role, TopologyFormat

_NODE = re.compile(r'^(Switch|Ca|Rt)\s+([0-9]{1,4})\s+"([^"]+)"\s*(?:#\s*(.*))?$')
_PORT = re.compile(
    r'^\[([0-9]{1,4})\](?:\[ext [0-9]+\])?(?:\(([0-9a-f]+)\))?\s+"([^"]+)"\[([0-9]{1,4})\]\S*\s*(.*)$'
)
_NAME = re.compile(r'"([^"]*)"')
_SAID = re.compile(r"^(vendid|devid|sysimgguid|switchguid|caguid|rtguid|Chassis|Non-Chassis|DR path|#|\s*$)")


class IbNetDiscover(TopologyFormat):
    """ibnetdiscover: InfiniBand's switches and channel adapters"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        lines = start.splitlines()
        return (
            None
            if any(_NODE.match(line.strip()) for line in lines)
            else 'it has no line Switch N "GUID" nor Ca N "GUID"'
        )

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        lines = read_text(path, TopologyError).splitlines()
        called = _names(lines, cables)
        own, met = "", set[tuple[tuple[str, str], tuple[str, str]]]()
        for number, line in enumerate(lines, 1):
            line = line.rstrip()
            if node := _NODE.match(line):
                own = node[3]
            elif port := _PORT.match(line):
                if not own:
                    raise cables.wrong("a port before any Switch or Ca", number)
                if port[3] not in called:
                    raise cables.wrong(f"{port[3]!r} is described nowhere", number, "is the file complete?")
                ends = sorted(((own, port[1]), (port[3], port[4])))
                if (ends[0], ends[1]) in met:
                    continue
                met.add((ends[0], ends[1]))
                if own == port[3]:
                    report.ignored("link from a node to itself")
                    continue
                tail = _NAME.sub("", port[5])
                cables.link(
                    called[own],
                    called[port[3]],
                    rate_bps=port_rate(tail),
                    line=number,
                )
            elif not _SAID.match(line):
                raise cables.wrong(
                    f"{line.strip()[:60]!r}", number, "a node, a port, or what ibnetdiscover writes"
                )


def _names(lines: list[str], cables: Cables) -> dict[str, str]:
    """What each node is called: its description, with its GUID where several have one."""
    found: dict[str, tuple[str, Role]] = {}
    for number, line in enumerate(lines, 1):
        if node := _NODE.match(line.strip()):
            if node[3] in found:
                raise cables.wrong(f"{node[3]!r} is described twice", number)
            text = _NAME.search(node[4] or "")
            name = " ".join(text[1].split()) if text else ""
            found[node[3]] = (name or node[3], "endpoint" if node[1] == "Ca" else "switch")
    count: dict[str, int] = {}
    for name, _ in found.values():
        count[name] = count.get(name, 0) + 1
    called = {guid: name if count[name] == 1 else f"{name} {guid}" for guid, (name, _) in found.items()}
    from cosim.topology.from_file import natural

    # Aggregation nodes of SHARP are channel adapters inside switches; they compute nothing.
    for guid in sorted(found, key=lambda one: natural(called[one])):
        role = found[guid][1]
        cables.node(called[guid], "switch" if "aggregation node" in called[guid].lower() else role)
    return called
