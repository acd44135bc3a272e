"""One cheapest path for each flow, by distance tables; compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cosim.topology.cheapest import Distances, cheapest_links
from cosim.topology.graph import I32, I64
from cosim.topology.kernels import FAR, loop, mix, part

FIRST, HASHED, BY_DESTINATION, BY_CHANNEL = 0, 1, 2, 3
"""Which of several cheapest ways :func:`walk` takes."""

_KNOWN = 1 << 12
"""Places of :func:`walk`'s memory; a power of two."""


class Known(NamedTuple):
    """Candidates found: ``pool[at : at + ways]`` for (node, root); ``used[0]`` of the pool is taken."""

    node: I64
    root: I64
    at: I64
    ways: I64
    pool: I32
    used: I64


def nothing_known(num_links: int) -> Known:
    """The memory of :func:`walk` to begin with."""
    return Known(
        node=np.full(_KNOWN, -1),
        root=np.full(_KNOWN, -1),
        at=np.zeros(_KNOWN, np.int64),
        ways=np.zeros(_KNOWN, np.int64),
        pool=np.empty(2 * num_links + 16, np.int32),
        used=np.zeros(1, np.int64),
    )


class Flows(NamedTuple):
    """Whose paths are wanted: int32[n] each; ``place_of`` int64[endpoints] has each destination's digits."""

    src: I32
    dst: I32
    channel: I32
    place_of: I64


@loop
def walk(
    to: Distances, known: Known, flows: Flows, choice: int, seed: Any, ptr: I64, links: I32, first: int
) -> tuple[int, bool]:
    """Follow the distance tables for the flows from ``first`` on: (where it stopped, whether that has one).

    It stops at the end, at a flow without a path, and at one for whose path ``links`` has no room.

    At each node the candidates are the out-links on a cheapest way, in link order. ``choice`` says which is
    taken: the first; by a hash of (src, dst, channel, seed) and the node; or by the destination's place or
    the channel, of which each node with w candidates takes one digit in base w. On the way to a root the
    candidates are those of all who go there, and remembered.
    """
    golden = np.uint64(0x9E3779B97F4A7C15)
    for i in range(first, len(flows.src)):
        node, goal = np.int64(flows.src[i]), np.int64(flows.dst[i])
        h = np.uint64(0)
        if choice == HASHED:
            h = mix(mix(mix(np.uint64(seed) + golden) + np.uint64(node)) + np.uint64(goal))
            h = mix(h + np.uint64(flows.channel[i]))
        last = to.last_link[goal]
        digits = np.int64(flows.channel[i]) if choice == BY_CHANNEL else flows.place_of[goal]
        at = ptr[i]
        while node != goal:
            if last >= 0 and to.link_src[last] == node:
                pick = last
            else:
                place, ways = _candidates(to, known, node, goal)
                if ways == 0:
                    return i, False
                chosen = np.int64(0)
                if choice == HASHED:
                    # With the node's own number: nodes that hash alike would all pick the same of their ways.
                    x = mix(h + np.uint64(node) * golden)
                    chosen = np.int64(((x >> np.uint64(32)) * np.uint64(ways)) >> np.uint64(32))
                elif choice != FIRST:
                    chosen = digits % ways
                    digits //= ways
                pick = known.pool[place + chosen]
            if at == len(links):
                return i, True
            links[at] = pick
            at += 1
            node = np.int64(to.link_dst[pick])
        ptr[i + 1] = at
    return len(flows.src), True


@part
def _candidates(to: Distances, known: Known, node: Any, goal: Any) -> tuple[Any, Any]:
    """Where in the pool the candidates at a node stand, and how many."""
    root = np.int64(to.root_of[goal])
    first = known.used[0]
    if node == root:
        return first, _ways_down(to, root, goal, known.pool, first)
    # All who pass a node of the core on the way to a root have the same candidates there, whatever endpoint
    # behind the root they go to; only nodes near the endpoint know a way of their own.
    goes_to_root = to.column_of[node] >= 0 and to.stub_cost[node] == 0 and not _is_near(to, node, goal)
    slot = (node * 31 + root) & (_KNOWN - 1)
    if goes_to_root and known.node[slot] == node and known.root[slot] == root:
        return known.at[slot], known.ways[slot]
    # A node has at most all links for candidates: past that much of the pool, begin anew and forget.
    if first > len(to.out_link):
        known.used[0] = first = 0
        for k in range(_KNOWN):
            known.node[k] = -1
    if goes_to_root and to.rows[to.row_of[root], to.column_of[node]] < 2 * to.least:
        ways = _straight_ways(to, node, root, known.pool, first)
    else:
        ways = cheapest_links(to, node, goal, known.pool, first)
    if goes_to_root:
        known.node[slot], known.root[slot] = node, root
        known.at[slot], known.ways[slot] = first, ways
        known.used[0] += ways
    return first, ways


@part
def _straight_ways(to: Distances, node: Any, root: Any, pool: I32, used: Any) -> Any:
    """How many links from a node of the core to a root, which is nearer than by any two links, are on a
    cheapest way: into ``pool`` from ``used`` on, by number.

    Looked for from the root's side: a spine leads to more leaves than a leaf is led to by spines.
    """
    distance, ways = to.rows[to.row_of[root], to.column_of[node]], 0
    for k in range(to.core_ptr[root], to.core_ptr[root + 1]):
        link = to.core_link[k]
        if to.link_src[link] == node and to.cost[link] == distance:
            pool[used + ways] = link
            ways += 1
    return ways


@part
def _ways_down(to: Distances, root: Any, goal: Any, pool: I32, used: Any) -> Any:
    """How many links out of a root are on a cheapest way: into ``pool`` from ``used`` on, by number.

    Looked for from the destination's side, for a root may have hundreds of links.
    """
    best, ways = FAR, 0
    for k in range(to.in_ptr[goal], to.in_ptr[goal + 1]):
        link = to.in_link[k]
        d = to.cost[link]
        near = to.link_src[link]
        if near != root:
            behind = to.in_ptr[near]
            if to.in_ptr[near + 1] - behind != 1 or to.link_src[to.in_link[behind]] != root:
                continue
            link = to.in_link[behind]
            d += to.cost[link]
        if d > best:
            continue
        if d < best:
            best, ways = d, 0
        # They come by the number of the link into the goal: put each where its own number belongs, once.
        at = ways
        while at > 0 and pool[used + at - 1] > link:
            at -= 1
        if at > 0 and pool[used + at - 1] == link:
            continue
        for later in range(ways, at, -1):
            pool[used + later] = pool[used + later - 1]
        pool[used + at] = link
        ways += 1
    return ways


@part
def _is_near(to: Distances, node: Any, goal: Any) -> bool:
    for k in range(to.near_ptr[goal], to.near_ptr[goal + 1]):  # noqa: SIM110 - compiled
        if to.near_node[k] == node:
            return True
    return False
