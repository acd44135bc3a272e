"""What hosts and switches see of their neighbours by LLDP: `lldpctl`, as text, keyvalue or JSON.

A dump is of one device and doesn't say which: its file is called so (`gpu1.json`), and a folder has one for
each. A link that both ends list counts once. Rates come from what was negotiated (`100GbaseSR4`), where the
dump has it. Source: lldpctl(8) of lldpd.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import read_text
from cosim.formats.cables.rates import port_rate
from cosim.topology.file_format import Cables, TopologyFormat
from cosim.topology.from_file import natural

_KEY = re.compile(
    r"^lldp\.([^=]+?)\.(chassis\.name|port\.(?:ifname|local|descr|mac)|port\.auto-negotiation\.current)=(.*)$"
)
_NEED = "lldpctl's text, `-f keyvalue` or `-f json`"


class Lldp(TopologyFormat):
    """lldpctl: neighbours of each host and switch; a folder with a file of each"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        text = start.lstrip()
        if text.startswith("lldp.") or "LLDP neighbors:" in start or re.match(r'[{\[]\s*"lldp"', text):
            return None
        return f"it is none of {_NEED}"

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        files = [path]
        if path.is_dir():
            inside = (one for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
            files = sorted(inside, key=lambda one: natural(one.name))
        met: set[frozenset[tuple[str, str]]] = set()
        for file in files:
            own = file.name.split(".")[0] if file.suffix else file.name
            of_file = Cables(str(file), cables.roles)
            of_file.node(own)
            for port, peer, peer_port, kind in _neighbours(file, of_file):
                ends = frozenset(((own, port), (peer, peer_port)))
                if ends in met:
                    continue
                met.add(ends)
                of_file.link(own, peer, rate_bps=port_rate(kind))
            cables.cables += of_file.cables
        report.assumed("a device is called as its file", len(files))


def _neighbours(file: Path, cables: Cables) -> Iterator[tuple[str, str, str, str]]:
    """Own port, the neighbour, its port, and the kind of link."""
    text = read_text(file, TopologyError)
    if text.lstrip().startswith(("{", "[")):
        yield from _of_json(text, cables)
        return
    ports: dict[str, dict[str, str]] = {}
    if "LLDP neighbors:" in text:
        own = ""
        for line in text.splitlines():
            key, _, value = (part.strip() for part in line.partition(":"))
            if key == "Interface":
                own = value.split(",")[0].strip()
                ports[f"{own}#{len(ports)}"] = {"own": own}
            elif ports and key in ("SysName", "PortID", "PortDescr", "MAU oper type"):
                ports[[*ports][-1]].setdefault(key, value)
        for said in ports.values():
            peer_port = said.get("PortDescr") or said.get("PortID", "").partition(" ")[2]
            yield _checked(
                said["own"], said.get("SysName", ""), peer_port, said.get("MAU oper type", ""), cables
            )
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("lldp."):
            raise cables.wrong(f"{line.strip()[:60]!r}", number, _NEED)
        if found := _KEY.match(line):
            ports.setdefault(found[1], {}).setdefault(found[2], found[3].strip())
    for own, said in ports.items():
        port = next(
            (said[key] for key in ("port.ifname", "port.local", "port.descr", "port.mac") if key in said), ""
        )
        yield _checked(
            own, said.get("chassis.name", ""), port, said.get("port.auto-negotiation.current", ""), cables
        )


def _checked(own: str, peer: str, port: str, kind: str, cables: Cables) -> tuple[str, str, str, str]:
    if not peer:
        raise cables.wrong(f"interface {own} has a neighbour without a name", hint="SysName, or chassis.name")
    return own, peer.split(".")[0], port, kind


def _of_json(text: str, cables: Cables) -> Iterator[tuple[str, str, str, str]]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise cables.wrong(f"not JSON: {problem}", getattr(problem, "lineno", None)) from None
    lldp = _first(_dict(_first(found)).get("lldp"))
    interfaces = _dict(lldp).get("interface", [])
    for one in interfaces if isinstance(interfaces, list) else [interfaces]:
        entry = _dict(one)
        # json0 has {"name": "eth0", ...}, json {"eth0": {...}}
        pairs = [(str(entry["name"]), entry)] if isinstance(entry.get("name"), str) else list(entry.items())
        for own, what in pairs:
            for each in what if isinstance(what, list) else [what]:
                yield _of_interface(own, _dict(each), cables)


def _of_interface(own: str, said: dict[str, Any], cables: Cables) -> tuple[str, str, str, str]:
    chassis = _dict(_first(said.get("chassis")))
    name = _value(chassis.get("name"))
    if not name and chassis:  # {"leaf1": {"id": ...}}
        first = next(iter(chassis))
        name = first if isinstance(chassis[first], dict) else ""
    port = _dict(_first(said.get("port")))
    of = _value(port.get("id")) or _value(port.get("descr"))
    kind = _value(_dict(_first(port.get("auto-negotiation"))).get("current"))
    return _checked(own, name, of, kind, cables)


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _value(value: Any) -> str:
    """A text, whether plain, {"value": ...} or a list with one of these."""
    value = _first(value)
    if isinstance(value, dict):
        value = value.get("value", "")
    return str(value) if isinstance(value, str | int | float) else ""
