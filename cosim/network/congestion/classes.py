"""Classes of priority on one link: what one leaves is what those after it have, and that changes when its
load does, its queue has gone, or it is paused or let go on.
"""

from __future__ import annotations

from cosim.network.congestion.changes import change
from cosim.network.congestion.fronts import have_moved
from cosim.network.congestion.ports import left_for
from cosim.network.congestion.state import CongestionState
from cosim.network.jit import inlined

_NONE = -1
_ALIKE = 16
"""As where loads change: what is left differs by less than this part, and is shared as before."""


@inlined
def is_waited_for(fluid: CongestionState, p: int) -> bool:
    """Whether anything of a class after port ``p``'s is on its link, which has nothing while ``p`` queues."""
    q = p + len(fluid.links)
    while q < len(fluid.links) * fluid.counts[0].num_classes:
        if fluid.ports[q].first != _NONE or fluid.ports[q].head != _NONE:
            return True
        q += len(fluid.links)
    return False


@inlined
def look_after(fluid: CongestionState, p: int) -> None:
    """Have what classes after port ``p``'s pass on worked out anew, where something else is left for them."""
    q = p + len(fluid.links)
    while q < len(fluid.links) * fluid.counts[0].num_classes:
        port = fluid.ports[q]
        left = left_for(fluid, q)
        before = port.left
        if abs(left - before) * _ALIKE > before:
            port.left = left
            # Where all that comes passed, and passes, nothing changes: who rests there goes on to.
            waits = port.queue > 0.0 or float(port.load) > left or 0.0 <= before < float(port.load)
            m = port.first if waits else _NONE
            while m != _NONE:
                if fluid.settings[0].traced != 0.0:
                    have_moved(fluid, fluid.strand_of[m])
                else:
                    change(fluid, fluid.hops[m].conn)
                m = fluid.hops[m].after
        q += len(fluid.links)
