"""Links that processes change while ns-3 runs: ns-3 told before the run of the same is the referee."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import simpy

import cosim
from cosim.protocol.adapters import missing_packages

Proc = Generator[simpy.Event, Any, Any]
Steps = tuple[tuple[str, str, dict[str, Any]], ...]
"""Times, links and what becomes of them."""
NS3 = pytest.mark.skipif(bool(missing_packages("ns3")), reason="ns-3 is not there")
FABRIC = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 2, "latency": "1us"}
WORLD = {"topology": {**FABRIC, "rate": "10Gbps"}, "detection": "60us", "seed": 3}
TCP = {"simulator": "ns3", "transport": "dctcp"}


def sends(sim: Any, src: int, dst: int) -> Proc:
    """Messages one after another: some go while the link is down."""
    for number in range(8):
        yield sim.transfer(src, dst, 200_000 + 1000 * number)


def changes(sim: Any, steps: Steps) -> Proc:
    """Does what each step says at its time."""
    for when, link, how in steps:
        yield sim.timeout(sim.delay_ps(when) - sim.now)
        sim.change(link, **how)


def run(
    network: Any,
    steps: Steps = (),
    events: tuple[dict[str, Any], ...] = (),
) -> cosim.Run:
    """Four pairs that send, on a fabric that processes or events change."""
    more = {"events": list(events)} if events else {}
    with cosim.open({**WORLD, **more, "network": network}, changes_links=bool(steps)) as sim:
        for src, dst in ((0, 2), (1, 3), (0, 3), (1, 2)):
            sim.process(sends(sim, src, dst))
        sim.process(changes(sim, steps))
        made: cosim.Run = sim.run()
    return made


SLOWER: Steps = (
    ("300us", "leaf0 -> spine1", {"rate": "2Gbps"}),
    ("900us", "leaf0 -> spine1", {"up": True}),
)
DOWN: Steps = (
    ("300us", "leaf0 -> spine1", {"up": False}),
    ("500us", "leaf0 -> spine0", {"up": False}),
    ("700us", "leaf0 -> spine0", {"up": True}),
    ("900us", "leaf0 -> spine1", {"up": True}),
)


@pytest.mark.slow
@NS3
@pytest.mark.parametrize(
    ("steps", "events"),
    [
        (SLOWER, ({"link": "leaf0 -> spine1", "rate": "2Gbps", "at": "300us", "until": "900us"},)),
        (
            DOWN,
            (
                {"link": "leaf0 -> spine1", "down": True, "at": "300us", "until": "900us"},
                {"link": "leaf0 -> spine0", "down": True, "at": "500us", "until": "700us"},
            ),
        ),
    ],
    ids=["rate", "down"],
)
def test_a_change_comes_to_what_the_same_event_comes_to(
    steps: Steps, events: tuple[dict[str, Any], ...]
) -> None:
    told, changed, still = run(TCP, events=events), run(TCP, steps), run(TCP)
    assert told.digest == changed.digest
    assert told.digest != still.digest


@NS3
@pytest.mark.slow
def test_its_rdma_says_that_it_can_not() -> None:
    network = {"model": "ns3_rdma", "control": "dcqcn"}
    with pytest.raises(cosim.InputError, match="no links that change while it runs"):
        run(network, (("1us", "leaf0 -> spine0", {"up": False}),))
