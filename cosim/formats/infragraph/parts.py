"""What InfraGraph descriptions are made of: devices, components, edges between endpoints with slices."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cosim.errors import TopologyError
from cosim.formats.infragraph.mapping import Map

MAX_NODES = 1 << 20
_PART = re.compile(r"([^\[\].]+)(?:\[([-0-9:]{0,40})\])?$")

ComponentPart = tuple[str, slice | int | None]
"""A component (or instance) and which of them: a slice, one, or all."""


@dataclass(eq=False)
class Edge:
    """Two endpoints, a scheme, the link's name, and where it stands."""

    ends: tuple[tuple[ComponentPart, ...], tuple[ComponentPart, ...]]
    scheme: str
    link: str
    owner: Map
    number: int | None = None
    """Which of the owner's connections, where it is one."""

    def error(self, message: str, hint: str | None = None) -> TopologyError:
        """A mistake in this edge."""
        if self.number is None:
            return self.owner.error(message, hint=hint)
        at = self.owner.item_error(message, "connections", self.number)
        return TopologyError(message, location=at.location, hint=hint)


@dataclass(eq=False)
class Component:
    """``count`` is None until something says it."""

    kind: str
    count: int | None
    where: Map


@dataclass(eq=False)
class Device:
    """A device; ``nodes`` and ``edges`` of its components, nested devices included, are found once."""

    name: str
    where: Map
    components: dict[str, Component] = field(default_factory=dict)
    links: dict[str, Map] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)


Joined = tuple[str, str, str, Edge]
"""Two nodes by name, the link's key (``device.link`` or ``link``), and the edge that joins them."""


def part(where: Map, text: str) -> ComponentPart:
    """``xpu``, ``xpu[3]`` or ``xpu[0:4]``.

    Raises
    ------
    TopologyError
        Anything else.
    """
    found = _PART.match(text)
    if found is None:
        raise where.error(f"{text[:80]!r} should be a name, with [0], [0:4] or nothing after it")
    name, inside = found.groups()
    if inside is None or inside == "":
        return name, None
    try:
        numbers = [int(each) if each else None for each in inside.split(":")]
        if any(number is not None and abs(number) > MAX_NODES for number in numbers) or len(numbers) > 3:
            raise ValueError
        if len(numbers) == 1:
            assert numbers[0] is not None
            return name, numbers[0]
        which = slice(*numbers)
        range(1)[which]  # a step of 0 is refused here
    except ValueError:
        raise where.error(f"[{inside}] is no index or slice, as in [0], [1:] or [0:8:2]") from None
    return name, which
