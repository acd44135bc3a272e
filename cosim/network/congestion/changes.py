"""What changed in an instant: connections, ports and hosts to look at when time leaves it, each once."""

from __future__ import annotations

from cosim.network.calendar import Records
from cosim.network.congestion.columns import CHANGED_N, HOSTS_N, OPEN, STAMP, TOUCHED_N, Fluid
from cosim.network.flows import I32, I64
from cosim.network.jit import inlined

_NONE = -1


@inlined
def change(meta: I64, conns: Records, changed: I32, c: int) -> None:
    """Mark a connection as having a new rate to send at."""
    if conns[c].stamp != meta[STAMP]:
        conns[c].stamp = meta[STAMP]
        changed[meta[CHANGED_N]] = c
        meta[CHANGED_N] += 1
        meta[OPEN] = 1


@inlined
def touch(meta: I64, ports: Records, touched: I32, port: int) -> None:
    """Mark a port as having a new load."""
    if ports[port].stamp != meta[STAMP]:
        ports[port].stamp = meta[STAMP]
        touched[meta[TOUCHED_N]] = port
        meta[TOUCHED_N] += 1
        meta[OPEN] = 1


@inlined
def own_changed(meta: I64, ports: Records, hosts: I32, port: int, more: int) -> None:
    """What the flows that begin at a port want changes by ``more``."""
    ports[port].own += more
    meta[OPEN] = 1
    base = ports[port].link
    if ports[base].listed == 0:
        ports[base].listed = 1
        hosts[meta[HOSTS_N]] = base
        meta[HOSTS_N] += 1


@inlined
def tell(meta: I64, fluid: Fluid, u: int) -> None:
    """Everything that passes port ``u`` is to be looked at."""
    touch(meta, fluid.ports, fluid.touched, u)
    m = fluid.ports[u].first
    own = False
    while m != _NONE:
        c = fluid.hops[m].conn
        change(meta, fluid.conns, fluid.changed, c)
        own = own or fluid.conns[c].hop == m
        m = fluid.hops[m].after
    if own:
        own_changed(meta, fluid.ports, fluid.hosts, u, 0)
