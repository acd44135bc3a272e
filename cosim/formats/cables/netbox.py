"""NetBox's cables as JSON: of its REST API (``/api/dcim/cables/``), of GraphQL, old or new.

A cable's ends are ports of devices. Its rate is the speed of a port (kbit/s), or what its kind says
(`400gbase-x-qsfpdd`). Cables that are planned or gone, and those of power and consoles, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosim.errors import TopologyError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import read_text
from cosim.formats.cables.columns import STATES, plain, role_of
from cosim.formats.cables.rates import port_rate, rate_of
from cosim.topology.file_format import Cables, TopologyFormat

_ENDS = (
    ("a_terminations", "termination_a", "aTerminations"),
    ("b_terminations", "termination_b", "bTerminations"),
)
_OTHER = ("power", "console", "front", "rear", "circuit")


class NetBox(TopologyFormat):
    """NetBox's cables as JSON (REST or GraphQL)"""

    def refuses(self, start: str, path: Path) -> str | None:  # noqa: ARG002 - the content says it
        """See :class:`TopologyFormat`."""
        text = start.lstrip()
        if not text.startswith(("{", "[")):
            return "it is no JSON"
        if not any(f'"{name}"' in text for names in _ENDS for name in names):
            return "its JSON has no a_terminations"
        return None

    def read(self, path: Path, cables: Cables, report: ReportBuilder) -> None:
        """See :class:`TopologyFormat`."""
        try:
            found = json.loads(read_text(path, TopologyError))
        except (ValueError, RecursionError) as problem:
            raise cables.wrong(f"not JSON: {problem}", getattr(problem, "lineno", None)) from None
        many = list(_cables(found))
        if not many:
            raise cables.wrong("has no cables: nothing has a_terminations and b_terminations")
        if isinstance(found, dict) and found.get("next"):
            report.doubt("topology", "the file is one page of several (next)", "all cables: ?limit=0")
        for number, cable in enumerate(many):
            _add(cable, f"cable {cable.get('id', number)}", cables, report)


def _cables(found: Any) -> Iterator[dict[str, Any]]:
    """Whatever in the JSON has both ends, in order."""
    if isinstance(found, list):
        for one in found:
            yield from _cables(one)
    elif isinstance(found, dict):
        if all(any(name in found for name in names) for names in _ENDS):
            yield found
        else:
            for one in found.values():
                if isinstance(one, dict | list):
                    yield from _cables(one)


def _add(cable: dict[str, Any], what: str, cables: Cables, report: ReportBuilder) -> None:
    status = cable.get("status", "")
    status = plain(str(status.get("value", "") if isinstance(status, dict) else status))
    if status not in STATES:
        report.ignored(f"cable that is {status}")
        return
    ends = [[_port(port) for port in _listed(cable, names)] for names in _ENDS]
    if any(kind in port["kind"] for end in ends for port in end for kind in _OTHER):
        report.ignored("cable of power, consoles or panels")
        return
    if any(not end or not all(port["device"] for port in end) for end in ends):
        raise cables.wrong(f"{what} has an end without a device", hint="ports of devices at both ends")
    try:
        rates = [rate for end in ends for port in end if (rate := _rate(port)) is not None]
    except ValueError as problem:
        raise cables.wrong(f"{what}: {problem}") from None
    for end in ends:
        for port in end:
            cables.node(port["device"], role_of(port["role"]))
    # A breakout cable has one end with several ports.
    many = max(map(len, ends))
    for k in range(many):
        one, two = (end[k % len(end)]["device"] for end in ends)
        cables.link(one, two, rate_bps=min(rates) if rates else None)


def _listed(cable: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    found = next((cable[name] for name in names if name in cable), None)
    return found if isinstance(found, list) else [] if found is None else [found]


def _port(port: Any) -> dict[str, str]:
    """Device, its role, kind and speed of a port, however deep they lie."""
    port = port if isinstance(port, dict) else {}
    inner = port.get("object", port)
    inner = inner if isinstance(inner, dict) else {}
    device = inner.get("device")
    device = device if isinstance(device, dict) else {"name": device or ""}
    role = device.get("role") or device.get("device_role") or ""
    role = role.get("slug") or role.get("name", "") if isinstance(role, dict) else role
    kind = inner.get("type", "")
    kind = kind.get("value", "") if isinstance(kind, dict) else kind
    name = device.get("name") or device.get("display") or ""
    return {
        "device": str(name),
        "role": str(role),
        "kind": str(port.get("object_type") or inner.get("__typename") or "").lower(),
        "type": str(kind or ""),
        "speed": str(inner.get("speed") or ""),
    }


def _rate(port: dict[str, str]) -> float | None:
    if port["speed"]:
        return rate_of(port["speed"], "kbps")
    return port_rate(port["type"].removeprefix("A_").replace("_", "-"))
