"""Random worlds for the referee, and the same ones for cosim's networks."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np

from cosim.fabric.changes import LinkChange, LinkChanges
from cosim.network.flows import ON_COMPLETION, ON_START, FlowGroup, pack_key
from cosim.network.simulator import NetworkSimulator
from cosim.testing.strategies.traffic import Row, Traffic, table_of
from tests.network.referee.exact import Flow, World
from tests.network.worlds import graph

_BYTES_PER_PS = 8 * 10**12
"""Bits per second that are one."""
GBPS = (8, 16, 40, 96, 100, 200, 333)
WHOLE_GBPS = (8, 16, 40, 96, 200, 400)
"""A whole number of bytes in a nanosecond."""
WEIGHTS = (Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3), Fraction(1, 4))


class _Tree:
    """Switches in a tree, an endpoint or more at each: one path between any two."""

    def __init__(self, draw: Random, switches: int, endpoints: int) -> None:
        self.endpoints, self.switches = endpoints, switches
        above = [draw.randrange(k) if k else -1 for k in range(switches)]
        pairs = [(endpoints + k, endpoints + up) for k, up in enumerate(above) if up >= 0]
        pairs += [
            (k, endpoints + (k if k < switches else draw.randrange(switches))) for k in range(endpoints)
        ]
        self.links = [(a, b) for one, other in pairs for a, b in ((one, other), (other, one))]
        draw.shuffle(self.links)

    def path(self, src: int, dst: int, seen: frozenset[int] = frozenset()) -> tuple[int, ...] | None:
        if src == dst:
            return ()
        for number, (a, b) in enumerate(self.links):
            if a == src and b not in seen and (rest := self.path(b, dst, seen | {src})) is not None:
                return (number, *rest)
        return None


def a_world(number: int, *, whole: bool = False) -> tuple[World, Traffic]:
    """The world of a number, as the referee has it and as cosim has it. ``whole``: nothing but links and
    flows, and times in whole nanoseconds.
    """
    draw = Random(number)
    tree = _Tree(draw, draw.randint(1, 4), draw.randint(2, 5) + 1)
    unit = 1000 if whole else 1
    gbps = [draw.choice(WHOLE_GBPS if whole else GBPS) for _ in tree.links]
    latency = [draw.choice((1, 500, 1_234) if whole else (0, 1, 500, 1_234)) * 1000 for _ in tree.links]
    flows: list[Flow] = []
    tables: list[list[Row]] = []
    given: list[dict[int, tuple[int, int]]] = []
    traits = []
    for job in range(draw.randint(1, 3)):
        first, rows, starts = len(flows), list[Row](), dict[int, tuple[int, int]]()
        weight, priority = (Fraction(1), 0) if whole else (draw.choice(WEIGHTS), draw.choice((0, 0, 0, 1, 2)))
        for k in range(draw.randint(1, 6)):
            src, dst = draw.sample(range(tree.endpoints), 2)
            size = draw.choice((1_000 if whole else 0, 65_536, 999_983, draw.randrange(1, 2_000_000)))
            # Given flows share channels, those that others release have their own: of two that are posted
            # at one instant the order is another matter (docs/explanation/instants.md).
            deps = draw.sample(range(k), min(k, draw.choice((0, 1, 1, 2))))
            kinds = [draw.random() < 0.7 for _ in deps]
            delay = unit * draw.choice((0, 1, 131, 5_000_000 // unit)) if deps else 0
            channel = 10 + k if deps else 0
            start = unit * draw.randrange(400_000_000 // unit)
            if not deps:
                starts[k] = (start, start)
            after = [
                (k - d, ON_COMPLETION if kind else ON_START) for d, kind in zip(deps, kinds, strict=True)
            ]
            rows.append((src, dst, size, channel, delay, after))
            path = tree.path(src, dst)
            assert path is not None
            named = hash((job, src, dst, channel))
            ends = tuple((first + d, kind) for d, kind in zip(deps, kinds, strict=True))
            flows.append(Flow(path, size, named, start, delay, ends, weight, priority))
        tables.append(rows)
        given.append(starts)
        traits.append((weight, priority))
    changes = [] if whole else _changes(draw, tree, gbps, any(not flow.size for flow in flows))
    rate = tuple(Fraction(one * 10**9, _BYTES_PER_PS) for one in gbps)
    turned = tuple((time, link, Fraction(new * 10**9, _BYTES_PER_PS)) for time, link, new in changes)
    links = [(a, b, one * 1e9, late) for (a, b), one, late in zip(tree.links, gbps, latency, strict=True)]
    topology = graph(tree.endpoints, tree.endpoints + tree.switches, links)
    if changes:
        told = [LinkChange(time, link, new * 1e9) for time, link, new in changes]
        topology = replace(topology, changes=LinkChanges(told, 0))
    groups = tuple(
        FlowGroup(
            job,
            table_of(rows, tree.endpoints, [(len(rows), 1)], 0),
            np.arange(tree.endpoints, dtype=np.int32),
            pack_key(job, 0, 0, 0),
            job=job,
            weight=float(weight),
            priority=priority,
        )
        for job, (rows, (weight, priority)) in enumerate(zip(tables, traits, strict=True))
    )
    return World(rate, tuple(latency), tuple(flows), turned), Traffic(topology, groups, tuple(given))


def _changes(draw: Random, tree: _Tree, gbps: list[int], empty: bool) -> list[tuple[int, int, int]]:
    """Links that slow down, and come back; dead ones too, where no flow is empty, which would wait."""
    found = []
    for _ in range(draw.choice((0, 0, 1, 3))):
        link, begun = draw.randrange(len(tree.links)), draw.randrange(10**9)
        least = 1 if empty else 0
        found.append((begun, link, draw.choice((least, 2, 50))))
        found.append((begun + draw.randrange(1, 10**9), link, gbps[link]))
    latest = {(time, link): new for time, link, new in found}
    return sorted((time, link, new) for (time, link), new in latest.items())


def times(network: NetworkSimulator, traffic: Traffic) -> list[int]:
    """When each flow completes, in the referee's order."""
    found = traffic.run(network)
    return [found[group.handle, flow][1] for group in traffic.groups for flow in range(group.table.num_flows)]
