"""What changed in an instant: connections, ports and hosts to look at when time leaves it, each once."""

from __future__ import annotations

from cosim.network.congestion.state import CongestionState
from cosim.network.jit import inlined

_NONE = -1


@inlined
def change(fluid: CongestionState, c: int) -> None:
    """Mark a connection as having a new rate to send at."""
    counts = fluid.counts[0]
    if fluid.conns[c].stamp != counts.stamp:
        fluid.conns[c].stamp = counts.stamp
        fluid.changed[counts.num_changed] = c
        counts.num_changed += 1
        counts.open = 1


@inlined
def touch(fluid: CongestionState, port: int) -> None:
    """Mark a port as having a new load."""
    counts = fluid.counts[0]
    if fluid.ports[port].stamp != counts.stamp:
        fluid.ports[port].stamp = counts.stamp
        fluid.touched[counts.num_touched] = port
        counts.num_touched += 1
        counts.open = 1


@inlined
def own_changed(fluid: CongestionState, port: int, more: int) -> None:
    """What the flows that begin at a port want changes by ``more``."""
    counts = fluid.counts[0]
    ports = fluid.ports
    ports[port].own += more
    counts.open = 1
    base = ports[port].link
    if ports[base].listed == 0:
        ports[base].listed = 1
        fluid.hosts[counts.num_hosts] = base
        counts.num_hosts += 1


@inlined
def tell(fluid: CongestionState, u: int) -> None:
    """Everything that passes port ``u`` is to be looked at."""
    touch(fluid, u)
    m = fluid.ports[u].first
    own = False
    while m != _NONE:
        change(fluid, fluid.hops[m].conn)
        own = own or fluid.hops[m].leads != 0
        m = fluid.hops[m].after
    if own:
        own_changed(fluid, u, 0)
