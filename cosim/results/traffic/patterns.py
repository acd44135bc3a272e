"""Which pattern a group's traffic has: a ring, a tree, a hypercube ..., and which host has which place in it.

The expected patterns are those of the built-in collective algorithms, from their own templates, and four that
no collective has: a pipeline (each rank to the next and back), a chain (to the next only), an incast and a
broadcast from one. A pattern with E pairs is laid over the E pairs of hosts with most bytes; pairs are
of one class where the pattern has the same bytes on them. An isomorphism of the two graphs gives each host
its place (VF2; Cordella et al., IEEE TPAMI 26, 2004, doi:10.1109/TPAMI.2004.75, as networkx has it). The
pattern that explains most bytes is named; of equals that with fewest pairs.

What a symmetric pattern can't tell apart it doesn't: a ring's first place is the lowest host number. Groups
of over 256 hosts are compared with a ring, an all-to-all, an incast and a broadcast only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from networkx import DiGraph, connected_components, from_edgelist
from networkx.algorithms.isomorphism import DiGraphMatcher, categorical_edge_match
from numpy.typing import NDArray

from cosim.captures.traffic import I32, I64
from cosim.errors import AlgorithmError
from cosim.pattern.contract import Algorithm
from cosim.pattern.costs import Costs
from cosim.pattern.direct import Direct
from cosim.pattern.dissemination import Dissemination
from cosim.pattern.double_binary_tree import DoubleBinaryTree
from cosim.pattern.halving_doubling import HalvingDoubling
from cosim.pattern.recursive_doubling import RecursiveDoubling
from cosim.pattern.ring import RingAlgorithm
from cosim.pattern.template import Collective
from cosim.pattern.tree import BinomialTree

F64 = NDArray[np.float64]
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]

LEAST_EXPLAINED = 0.6
"""Below, a pattern isn't named."""
_MOST_HOSTS = 256
MIXED = "mixed"
"""A name for what has none."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """A group's traffic: the pattern's name, the group's hosts in the pattern's order, the share of the
    bytes that it explains, and the bytes. ``mixed`` has hosts in order of their numbers, and explains
    nothing.
    """

    name: str
    order: I32
    explained: float
    size_bytes: int


def groups_of(src: I32, dst: I32) -> list[I32]:
    """Hosts that are connected by traffic, each group sorted: a job or a process group, if no two share a
    host.
    """
    edges = np.unique(np.stack([src, dst], axis=1), axis=0) if len(src) else np.zeros((0, 2), np.int32)
    graph: Any = from_edgelist(edges[edges[:, 0] != edges[:, 1]].tolist())
    return sorted((np.array(sorted(part), np.int32) for part in connected_components(graph)), key=min)


def name_pattern(src: I32, dst: I32, size_bytes: I64 | F64) -> Pattern:
    """The pattern of one group's pairs; pairs are added up, and a host's traffic to itself is left out."""
    apart = src != dst
    hosts, place = np.unique(np.stack([src[apart], dst[apart]]), return_inverse=True)
    count = len(hosts)
    cells = np.bincount(
        place.reshape(2, -1)[0] * count + place.reshape(2, -1)[1], size_bytes[apart], minlength=count * count
    )
    total = float(cells.sum())
    if count < 2 or not total:
        return Pattern(MIXED, hosts.astype(np.int32), 0.0, int(total))
    if count == 2:
        return Pattern("pair", hosts.astype(np.int32), 1.0, int(total))
    from_host, to_host = np.divmod(np.flatnonzero(cells), count)
    shape = tuple(from_host.tolist()), tuple(to_host.tolist())
    values = cells[cells > 0]
    name, order, explained = _best(count, shape, tuple((values / values.max()).tolist()))
    return Pattern(name, hosts[list(order)].astype(np.int32), explained, int(total))


@lru_cache(maxsize=4096)
def _best(
    count: int, shape: tuple[tuple[int, ...], tuple[int, ...]], size: tuple[float, ...]
) -> tuple[str, tuple[int, ...], float]:
    found = np.array(shape[0]), np.array(shape[1]), np.array(size)
    best: tuple[str, tuple[int, ...], float] = MIXED, tuple(range(count)), 0.0
    for name, pairs in patterns(count):
        if len(pairs[0]) > len(size):
            continue
        order = _laid_over(count, found, pairs)
        if order is None and name == "halving-doubling":
            order = _doubled(count, found)
        if order is None:
            continue
        explained = _explained(count, found, pairs, order)
        if explained > best[2] + 1e-6:
            best = name, order, explained
    return best if best[2] >= LEAST_EXPLAINED else (MIXED, tuple(range(count)), 0.0)


def _explained(count: int, found: Pairs, pairs: Pairs, order: tuple[int, ...]) -> float:
    """The largest share of the bytes that the pattern, at any scale, has under the bytes that were found,
    less what it has above them.
    """
    seen = np.zeros(count * count)
    seen[found[0] * count + found[1]] = found[2]
    place = np.array(order)
    cells = seen[place[pairs[0]] * count + place[pairs[1]]]
    ratios = np.unique(cells / pairs[2])
    tries = ratios[np.linspace(0, len(ratios) - 1, min(len(ratios), 64)).astype(np.int64)]
    fits = [
        np.minimum(cells, scale * pairs[2]).sum() - np.maximum(scale * pairs[2] - cells, 0).sum()
        for scale in tries
    ]
    return float(max(fits) / seen.sum())


def _laid_over(count: int, found: Pairs, pairs: Pairs) -> tuple[int, ...] | None:
    """``order[place]``: the host at each place of the pattern; None: it doesn't fit."""
    classes = _classes(pairs[2])
    strongest = np.lexsort((found[1], found[0], -found[2]))[: len(classes)]
    seen = found[0][strongest], found[1][strongest], np.sort(classes)
    expected = pairs[0], pairs[1], classes
    if _invariants(count, seen) != _invariants(count, expected):
        return None
    graph = _graph(count, seen)
    matcher = DiGraphMatcher(_graph(count, expected), graph, edge_match=categorical_edge_match("of", 0))
    mapping = next(matcher.isomorphisms_iter(), None)
    return None if mapping is None else tuple(mapping[place] for place in range(count))


def _doubled(count: int, found: Pairs) -> tuple[int, ...]:
    """The places of a halving-doubling whose least pairs others outweigh: groups are paired with those that
    they send most to, again and again; a group's traffic is its hosts' together, so that noise averages out.
    """
    cells = np.zeros((count, count))
    cells[found[0], found[1]] = found[2]
    cells += cells.T
    groups = np.arange(count)[:, None]
    while len(groups) > 1:
        size = groups.shape[1]
        between = cells[groups.ravel()][:, groups.ravel()]
        between = between.reshape(len(groups), size, len(groups), size).sum(axis=(1, 3))
        first, second = np.triu_indices(len(groups), 1)
        free = np.ones(len(groups), bool)
        merged = []
        for pair in np.argsort(-between[first, second], kind="stable").tolist():
            a, b = first[pair], second[pair]
            if free[a] and free[b]:
                free[[a, b]] = False
                turned = [groups[b][np.arange(size) ^ turn] for turn in range(size)]
                between_them = [float(cells[groups[a], one].sum()) for one in turned]
                merged.append(np.append(groups[a], turned[int(np.argmax(between_them))]))
        groups = np.array(merged)
    return tuple(groups[0].tolist())


def _classes(size: F64) -> NDArray[np.int64]:
    """0 for the pairs with most bytes, 1 for the next; sizes within a tenth are one class."""
    levels = np.sort(size)[::-1]
    number = np.append(0, np.cumsum(levels[1:] < 0.9 * levels[:-1]))
    return number[np.searchsorted(-levels, -size)]


def _graph(count: int, pairs: tuple[Any, Any, Any]) -> DiGraph[int]:
    graph: DiGraph[int] = DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((a, b, {"of": c}) for a, b, c in zip(*(x.tolist() for x in pairs), strict=True))
    return graph


def _invariants(count: int, pairs: tuple[Any, Any, Any]) -> tuple[object, ...]:
    """What isomorphic graphs share: degrees by class, pairs that go both ways."""
    src, dst, of = pairs
    most = int(of.max()) + 1
    degrees = np.zeros((count, 2 * most), np.int64)
    np.add.at(degrees, (src, of), 1)
    np.add.at(degrees, (dst, most + of), 1)
    both = np.isin(src * count + dst, dst * count + src)
    return sorted(map(tuple, degrees.tolist())), int(both.sum()), np.bincount(of).tolist()


def patterns(count: int) -> tuple[tuple[str, Pairs], ...]:
    """The patterns of a group of ``count`` hosts with their pairs, fewest pairs first."""
    return _patterns(count)


@lru_cache(maxsize=64)
def _patterns(count: int) -> tuple[tuple[str, Pairs], ...]:
    made = [(name, _summed(count, *pairs)) for name, pairs in _all_patterns(count)]
    return tuple(sorted(made, key=lambda one: len(one[1][0])))


def _all_patterns(count: int) -> Iterator[tuple[str, tuple[Any, Any, Any]]]:
    at = np.arange(count)
    ones = np.ones(count - 1)
    yield "incast", (at[1:], np.zeros(count - 1, np.int64), ones)
    yield "broadcast", (np.zeros(count - 1, np.int64), at[1:], ones)
    yield "chain", (at[:-1], at[1:], ones)
    yield "pipeline", (np.append(at[:-1], at[1:]), np.append(at[1:], at[:-1]), np.append(ones, ones))
    for name, algorithms, collective in _ALGORITHMS:
        if count > _MOST_HOSTS and name not in ("ring", "all-to-all"):
            continue
        try:
            parts = [_template(make(), collective, count, chunk) for make, chunk in algorithms]
        except AlgorithmError:  # not of so many ranks
            continue
        yield name, tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))  # type: ignore[misc]


_Makers = tuple[tuple[Callable[[], Algorithm], int], ...]
_ALGORITHMS: tuple[tuple[str, _Makers, Collective], ...] = (
    ("ring", ((RingAlgorithm, 0),), Collective.ALL_REDUCE),
    ("binomial tree", ((BinomialTree, 0),), Collective.BROADCAST),
    ("binary tree", ((DoubleBinaryTree, 0),), Collective.ALL_REDUCE),
    ("double binary tree", ((DoubleBinaryTree, 0), (DoubleBinaryTree, 1)), Collective.ALL_REDUCE),
    ("halving-doubling", ((HalvingDoubling, 0),), Collective.ALL_REDUCE),
    ("recursive doubling", ((RecursiveDoubling, 0),), Collective.ALL_REDUCE),
    ("dissemination", ((Dissemination, 0),), Collective.BARRIER),
    ("all-to-all", ((Direct, 0),), Collective.ALL_TO_ALL),
)


def _template(algorithm: Algorithm, collective: Collective, count: int, chunk: int) -> tuple[Any, Any, Any]:
    """Bytes of each message of a collective; messages, where none has bytes."""
    algorithm.check(collective, count)
    made = algorithm.build(collective, count, count << 20, Costs(), chunk=chunk)
    repeats = np.repeat(made.block_repeat, np.diff(made.block_row))
    apart = made.src != made.dst
    size = (made.bytes if made.bytes[apart].any() else np.ones_like(made.bytes)) * repeats
    return made.src[apart].astype(np.int64), made.dst[apart].astype(np.int64), size[apart]


def _summed(count: int, src: Any, dst: Any, size: Any) -> Pairs:
    cells = np.bincount(src * count + dst, size, minlength=count * count)
    at = np.flatnonzero(cells)
    return at // count, at % count, cells[at].astype(np.float64)
