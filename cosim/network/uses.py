"""How much of links was in use, and when: listed as it becomes known, and put into bins many at once.

By then it is known how wide bins have to be: each time they are made wider, all of them are looked at, and a
run that lists less than is put at once makes them when it is over. What bins hold is the same, for shares of
a bin are rounded from where a use began on (:func:`cosim.network.core.put_share`).
"""

from __future__ import annotations

from cosim.network.core import Core, bins_end, put_share, widen
from cosim.network.fluid import Fluid
from cosim.network.jit import compiled, inlined


@inlined
def list_use(core: Core, fluid: Fluid, link: int, end: int) -> None:
    """A link carried what it did up to ``end``."""
    counts = fluid.counts[0]
    if counts.num_uses == len(fluid.uses):
        put_uses(core, fluid)
    use = fluid.uses[counts.num_uses]
    counts.num_uses += 1
    use.link = link
    use.start = fluid.links[link].since
    use.end = end
    use.fraction = fluid.links[link].used / fluid.links[link].capacity


@compiled
def put_uses(core: Core, fluid: Fluid) -> bool:
    """Put what is listed into bins; whether a link carries something now, which is listed when it ends."""
    counts = fluid.counts[0]
    last = 0
    for k in range(counts.num_uses):
        last = max(last, fluid.uses[k].end)
    while last > bins_end(core):
        if counts.has_put != 0:
            widen(core)
        else:
            core.state[0].bin_bits += 1
    for k in range(counts.num_uses):
        use = fluid.uses[k]
        put_share(core.link_busy, core.state[0].bin_bits, use.link, use.start, use.end, use.fraction)
    counts.num_uses = 0
    counts.has_put = 1
    for link in range(len(fluid.links)):  # noqa: SIM110 - compiled
        if fluid.links[link].used > 0.0:
            return True
    return False
