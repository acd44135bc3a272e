"""What columns of a cable list, or attributes of a graph's edges and nodes, are called."""

from __future__ import annotations

import re

from cosim.topology.file_format import Role

ONE: tuple[str, ...] = (
    "a", "from", "source", "src", "device a", "a device", "side a device", "source device", "src device",
    "from device", "local device", "local host", "hostname", "host", "device", "node a", "node1", "node 1",
    "local", "local node", "local system", "endpoint a", "end a", "a end", "from node", "source node",
    "a side", "side a", "device 1", "device1", "start", "a name", "source name", "source host", "device name",
    "a node", "local hostname", "switch", "u",
)  # fmt: skip
TWO: tuple[str, ...] = (
    "b", "to", "z", "target", "dst", "dest", "destination", "device b", "b device", "z device",
    "side b device", "target device", "destination device", "dst device", "to device", "remote device",
    "remote host", "peer", "peer hostname", "peerhostname", "peer device", "neighbor", "neighbour", "node b",
    "node2", "node 2", "remote", "remote node", "remote system", "endpoint b", "end b", "b end", "to node",
    "target node", "destination node", "b side", "side b", "z side", "z end", "device 2", "device2", "end",
    "b name", "target name", "destination name", "destination host", "b node", "remote hostname",
    "neighbor device",
    "neighbor name", "system name", "v", "dest device", "dest node",
)  # fmt: skip
RATE: tuple[str, ...] = (
    "rate",
    "speed",
    "bandwidth",
    "bw",
    "capacity",
    "link speed",
    "link rate",
    "link bandwidth",
    "port speed",
    "data rate",
)
LATENCY: tuple[str, ...] = ("latency", "delay", "link latency", "link delay", "propagation delay")
COUNT: tuple[str, ...] = ("count", "cables", "links", "quantity", "qty", "num links", "number of cables")
STATUS: tuple[str, ...] = ("status", "state")
ROLE: tuple[str, ...] = ("role", "type", "kind", "device type", "node type", "device role", "class")
ENDPOINT_ROLES = frozenset(
    ("endpoint", "host", "server", "gpu", "npu", "xpu", "accelerator", "compute", "node", "nic", "hca", "ca",
     "worker",
     "compute node", "gpu server", "gpu node", "gpuserver")
)  # fmt: skip
SWITCH_ROLES = frozenset(
    ("switch", "router", "leaf", "spine", "tor", "core", "agg", "aggregation", "super spine", "superspine",
     "access",
     "edge", "leaf switch", "spine switch", "fabric", "rail", "leafswitch", "spineswitch", "top of rack")
)  # fmt: skip
_UNIT = re.compile(r" (gbps|gbit s|gb s|mbps|mbit s|kbps|bps|ps|ns|us|ms)\b")
STATES = frozenset(("connected", "active", "up", "in use", "installed", "ok", ""))
"""States that say that a cable is there."""


def plain(name: str) -> str:
    """A column's name in small letters and single spaces: `Side_A.Device` is `side a device`."""
    return " ".join(re.sub(r"[^a-z0-9]+", " ", name.lower()).split())


def is_one_of(name: str, known: tuple[str, ...]) -> bool:
    """A plain name, maybe with a unit behind it."""
    bare = _UNIT.sub("", f" {name}").strip()
    return name in known or bare in known or (not bare and "rate" in known)


def role_of(text: str) -> Role | None:
    """``endpoint`` or ``switch`` by what a file calls a node's role; None: it says neither."""
    role = plain(text)
    if role in ENDPOINT_ROLES:
        return "endpoint"
    return "switch" if role in SWITCH_ROLES else None
