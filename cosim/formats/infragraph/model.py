"""InfraGraph descriptions expanded: devices of components, instances of devices, and the edges between them.

Two forms are read. InfraGraph 1 and later has ``edges`` of two endpoints with slices (``xpu[0:4]``, Python's)
and a scheme: one2one joins them pairwise, many2many each with each, ring each with the next one. Before that,
``connections`` were texts such as ``xpu.0.pcie.nic.1``; counts that such a file leaves out are the least that
its connections need. Source: Keysight/infragraph (MIT), ``artifacts/openapi.yaml`` and its data model's docs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from cosim.files.import_report import ReportBuilder
from cosim.formats.infragraph.mapping import Map
from cosim.formats.infragraph.parts import MAX_NODES, Component, ComponentPart, Device, Edge, Joined, part
from cosim.registry import nearest

MAX_EDGES = 1 << 20
_TYPES = ("custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch")
_SCHEMES = ("one2one", "many2many", "ring")
_KNOWN = {
    "": {"infrastructure", "name", "description", "devices", "links", "instances", "edges", "connections"},
    "device": {"name", "description", "components", "links", "edges", "connections", "instances"},
    "component": {"name", "description", "count", "choice", "type", "external", *_TYPES},
    "link": {"name", "description", "physical", "bandwidth", "latency"},
    "instance": {"name", "description", "device", "count"},
    "edge": {"ep1", "ep2", "scheme", "link"},
    "endpoint": {"instance", "device", "component"},
}


class Infrastructure:
    """What the files say together; :meth:`expand` gives nodes and edges."""

    def __init__(self, files: Sequence[Map], instances: dict[str, str], report: ReportBuilder) -> None:
        self.report = report
        self.devices: dict[str, Device] = {}
        self.links: dict[str, Map] = {}
        self.instances: dict[str, Component] = {}
        self.edges: list[Edge] = []
        roots = []
        for file in files:
            self._unknown(file, "")
            root = file.map("infrastructure") or file
            if root is not file:
                self._unknown(root, "")
            roots.append(root)
        for root in roots:
            for found in root.maps("devices"):
                self._device(found)
        for name, device_name in instances.items():
            where = Map(files[0].file, 1)
            self.instances[name] = Component(device_name, None, where)
        for root in roots:
            self._top(root)
        if not self.instances:
            for name, device in self.devices.items():
                self.instances[name] = Component(name, 1, device.where)
                report.assumed(f"one instance of device {name}: the files have no instances")
        self._check_instances()
        self._infer_counts()

    def _unknown(self, found: Map, kind: str) -> None:
        for key in found:
            if key not in _KNOWN[kind]:
                meant = nearest(key, sorted(_KNOWN[kind])) if not kind else ""
                if meant:
                    raise found.error(f"{key!r} is no key of an infrastructure{meant}", key)
                self.report.ignored(f"key {key!r} of {kind or 'the infrastructure'}")

    def _device(self, found: Map) -> None:
        self._unknown(found, "device")
        name = found.text("name")
        if name in self.devices:
            raise found.error(f"another device is named {name!r}", "name")
        device = self.devices[name] = Device(name, found)
        for component in found.maps("components"):
            self._unknown(component, "component")
            inner = component.text("name")
            if inner in device.components:
                raise component.error(f"another component of {name} is named {inner!r}", "name")
            default = next((kind for kind in _TYPES if kind in component), "custom")
            kind = component.one_of("type" if "type" in component else "choice", _TYPES, default)
            count = component.whole("count", 0, MAX_NODES)
            device.components[inner] = Component(kind, count, component)
        for link in found.maps("links"):
            self._unknown(link, "link")
            device.links[link.text("name")] = link
        device.edges = [*self._edges(found, "component"), *self._connections(found)]

    def _top(self, root: Map) -> None:
        for link in root.maps("links"):
            self._unknown(link, "link")
            self.links[link.text("name")] = link
        nested = [each for device in root.maps("devices") for each in device.maps("instances")]
        for instance in [*root.maps("instances"), *nested]:
            self._unknown(instance, "instance")
            name = instance.text("name")
            if name in self.instances:
                raise instance.error(f"another instance is named {name!r}", "name")
            self.instances[name] = Component(
                instance.text("device"), instance.whole("count", 0, MAX_NODES), instance
            )
        self.edges += [*self._edges(root, "instance"), *self._connections(root)]
        for device in root.maps("devices"):
            if "instances" in device:
                self._move_edges(self.devices[device.text("name")])

    def _move_edges(self, device: Device) -> None:
        """Connections that stand in a device, but name instances, are the infrastructure's."""
        outer = [edge for edge in device.edges if edge.ends[0][0][0] not in device.components]
        device.edges = [edge for edge in device.edges if edge not in outer]
        self.edges += outer

    def _edges(self, found: Map, outer: str) -> Iterator[Edge]:
        for edge in found.maps("edges"):
            self._unknown(edge, "edge")
            ends = []
            for side in ("ep1", "ep2"):
                end = edge.map(side)
                if end is None:
                    raise edge.error(f"lacks {side!r}")
                self._unknown(end, "endpoint")
                key = "instance" if outer == "instance" else "device"
                path = [end.text(key)] if outer == "instance" or end.get("device") else []
                path.append(end.text("component"))
                ends.append(tuple(part(end, each) for text in path for each in text.split(".")))
            scheme = edge.one_of("scheme", _SCHEMES, "one2one")
            yield Edge((ends[0], ends[1]), scheme, edge.text("link"), edge)

    def _connections(self, found: Map) -> Iterator[Edge]:
        for number, text in enumerate(found.texts("connections")):
            words = text.split(".")
            ends: list[list[ComponentPart]] = [[], []]
            link, at = None, 0
            while at < len(words):
                if at + 1 < len(words) and re.fullmatch(r"\d{1,7}", words[at + 1]):
                    ends[link is not None].append((words[at], int(words[at + 1])))
                    at += 2
                elif link is None and ends[0]:
                    link, at = words[at], at + 1
                else:
                    break
            if at < len(words) or link is None or not ends[1]:
                raise found.item_error(
                    f"{text[:80]!r} is no connection; they look like xpu.0.pcie.nic.1", "connections", number
                )
            yield Edge((tuple(ends[0]), tuple(ends[1])), "one2one", link, found, number)

    def _check_instances(self) -> None:
        used = {name for edge in self.edges for name, _ in (edge.ends[0][0], edge.ends[1][0])}
        for name, instance in list(self.instances.items()):
            if instance.kind in self.devices:
                continue
            if name not in used:
                self.report.ignored(
                    f"instance {name}: its device {instance.kind} isn't described, and nothing connects to it"
                )
                del self.instances[name]
                continue
            raise instance.where.error(
                f"instance {name!r} is of device {instance.kind!r}, which isn't described"
                f"{nearest(instance.kind, self.devices)}",
                "device",
                hint="list the file that describes it too: file: [A.yaml, B.yaml]",
            )
        for edge in self.edges:
            for name, _ in (edge.ends[0][0], edge.ends[1][0]):
                if name not in self.instances:
                    have = ", ".join(self.instances) or "none"
                    raise edge.error(
                        f"an edge names {name!r}, which is no instance; there are: {have}",
                        f"say what it is an instance of: instances: {{{name}: DEVICE}}",
                    )

    def _infer_counts(self) -> None:
        """Give what has no count the least that edges need."""
        least: dict[int, int] = {}

        def need(component: Component, which: slice | int | None) -> None:
            top = which + 1 if isinstance(which, int) else which.stop if isinstance(which, slice) else None
            least[id(component)] = max(least.get(id(component), 1), top or 1)

        for home, edges in [
            (None, self.edges),
            *((device, device.edges) for device in self.devices.values()),
        ]:
            for edge in edges:
                for end in edge.ends:
                    device = home
                    for number, (name, which) in enumerate(end):
                        if home is None and number == 0:
                            need(self.instances[name], which)
                            device = self.devices[self.instances[name].kind]
                        elif device is not None:
                            component = self._component(device, name, edge)
                            need(component, which)
                            device = self.devices.get(name) if component.kind == "device" else None
        for label, component in [
            *((f"of instance {name}", each) for name, each in self.instances.items()),
            *(
                (f"{name} in {device.name}", each)
                for device in self.devices.values()
                for name, each in device.components.items()
            ),
        ]:
            if component.count is None:
                component.count = least.get(id(component), 1)
                self.report.assumed(f"{component.count} {label}, the least that edges need")

    def _component(self, device: Device, name: str, edge: Edge) -> Component:
        if name not in device.components:
            have = ", ".join(device.components) or "none"
            raise edge.error(
                f"{device.name} has no component {name!r}{nearest(name, device.components)}; it has: {have}"
            )
        return device.components[name]

    def expand(self) -> tuple[list[tuple[str, str]], list[Joined]]:
        """Nodes as (name, type) in the order of instances, and edges, each pair of nodes and link once.

        Raises
        ------
        TopologyError
            Too many of either, an index out of range, or a one2one of unequal numbers.
        """
        sizes: dict[str, int] = {}
        total = 0
        for instance in self.instances.values():
            total += (instance.count or 0) * self._size(instance.kind, sizes, instance.where)
            if total > MAX_NODES:
                raise instance.where.error(f"more than {MAX_NODES} components in all")
        nodes: list[tuple[str, str]] = []
        joined: dict[tuple[str, str, str], Joined] = {}
        inner: dict[str, tuple[list[tuple[str, str]], list[Joined]]] = {}
        for name, instance in self.instances.items():
            for number in range(instance.count or 0):
                its_nodes, its_edges = self._expanded(instance.kind, inner)
                nodes += [(f"{name}.{number}.{node}", kind) for node, kind in its_nodes]
                for one, two, link, edge in its_edges:
                    _join(joined, f"{name}.{number}.{one}", f"{name}.{number}.{two}", link, edge)
        for edge in self.edges:
            for one, two in self._pairs(edge, None, MAX_EDGES - len(joined)):
                _join(joined, one, two, self._link(edge), edge)
        return nodes, list(joined.values())

    def _link(self, edge: Edge) -> str:
        """The key of a link between instances: the infrastructure's, or that of the first end's device."""
        if edge.link in self.links:
            return edge.link
        for end in edge.ends:
            device = self.devices[self.instances[end[0][0]].kind]
            if edge.link in device.links:
                return f"{device.name}.{edge.link}"
        have = ", ".join(self.links) or "none"
        raise edge.error(f"no link {edge.link!r}{nearest(edge.link, self.links)}; there are: {have}")

    def _size(self, name: str, known: dict[str, int], where: Map, depth: int = 0) -> int:
        if depth > 16:
            raise where.error(f"device {name} contains itself, or is nested more than 16 deep")
        if name not in known:
            device = self.devices.get(name)
            if device is None:
                raise where.error(f"no device is named {name!r}{nearest(name, self.devices)}", "name")
            size = 0
            for inner, component in device.components.items():
                each = (
                    self._size(inner, known, component.where, depth + 1) if component.kind == "device" else 1
                )
                size += (component.count or 0) * each
            known[name] = min(size, MAX_NODES + 1)
        return known[name]

    def _expanded(
        self, name: str, known: dict[str, tuple[list[tuple[str, str]], list[Joined]]]
    ) -> tuple[list[tuple[str, str]], list[Joined]]:
        if name in known:
            return known[name]
        device = self.devices[name]
        nodes: list[tuple[str, str]] = []
        joined: dict[tuple[str, str, str], Joined] = {}
        for inner, component in device.components.items():
            for number in range(component.count or 0):
                if component.kind != "device":
                    nodes.append((f"{inner}.{number}", component.kind))
                    continue
                its_nodes, its_edges = self._expanded(inner, known)
                nodes += [(f"{inner}.{number}.{node}", kind) for node, kind in its_nodes]
                for one, two, link, edge in its_edges:
                    _join(joined, f"{inner}.{number}.{one}", f"{inner}.{number}.{two}", link, edge)
        for edge in device.edges:
            if edge.link not in device.links:
                raise edge.error(
                    f"{name} has no link {edge.link!r}{nearest(edge.link, device.links)}; it has: "
                    f"{', '.join(device.links) or 'none'}"
                )
            for one, two in self._pairs(edge, device, MAX_EDGES - len(joined)):
                _join(joined, one, two, f"{name}.{edge.link}", edge)
        known[name] = nodes, list(joined.values())
        return known[name]

    def _pairs(self, edge: Edge, device: Device | None, room: int) -> Iterable[tuple[str, str]]:
        sides = [self._names(edge, end, device) for end in edge.ends]
        counts = [len(side) for side in sides]
        if edge.scheme == "ring":
            if sides[0] != sides[1]:
                raise edge.error("a ring joins one set of components: ep1 and ep2 must be the same")
            turned = [*sides[0][1:], *sides[0][:1]]
            return [(one, two) for one, two in zip(sides[0], turned, strict=True) if one != two]
        many = counts[0] * counts[1] if edge.scheme == "many2many" else max(counts)
        if many > room:
            raise edge.error(f"{many} links; there may be {MAX_EDGES} in all")
        if edge.scheme == "many2many":
            return [(one, two) for one, two in product(*sides) if one != two]
        if counts[0] != counts[1]:
            raise edge.error(f"one2one joins {counts[0]} components with {counts[1]}; give each side as many")
        return [(one, two) for one, two in zip(*sides, strict=True) if one != two]

    def _names(self, edge: Edge, end: tuple[ComponentPart, ...], device: Device | None) -> list[str]:
        """Every node that an endpoint names."""
        choices: list[list[str]] = []
        total = 1
        for number, (name, which) in enumerate(end):
            if device is None and number == 0:
                component = self.instances[name]
                inner = self.devices[component.kind]
            elif device is None and number > 0 and not choices:
                raise edge.error("names nothing")
            else:
                home = inner if device is None or number > 0 else device
                component = self._component(home, name, edge)
                if component.kind == "device":
                    inner = self.devices[name]
                elif number + 1 < len(end):
                    raise edge.error(f"{name!r} is no device, so nothing is inside it")
            count = component.count or 0
            if isinstance(which, int):
                if not -count <= which < count:
                    raise edge.error(f"there is no {name}[{which}]; there are {count}")
                picked: range = range(which % count, which % count + 1)
            else:
                picked = range(count)[which] if which is not None else range(count)
            total *= len(picked)
            if total > MAX_NODES:
                raise edge.error(f"names more than {MAX_NODES} components")
            choices.append([f"{name}.{index}" for index in picked])
        if component.kind == "device" or (device is None and len(end) == 1):
            raise edge.error("names a device; name a component inside it")
        return [".".join(parts) for parts in product(*choices)]


def _join(joined: dict[tuple[str, str, str], Joined], one: str, two: str, link: str, edge: Edge) -> None:
    if len(joined) >= MAX_EDGES:
        raise edge.error(f"more than {MAX_EDGES} links in all")
    joined.setdefault((min(one, two), max(one, two), link), (one, two, link, edge))
