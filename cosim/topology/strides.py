"""Strides of rings over servers: server i is linked to i + s for each stride s, and all of them are one ring.

A ring that visits every g-th part of n servers has a stride of n / g times a number coprime to g. Of m
strides each is the first unused one at or above the smallest, times a power of (largest / smallest)^(1 / m).
Source: W. Wang et al., "TopoOpt: Co-optimizing Network Topology and Parallelization Strategy for Distributed
Training Jobs", NSDI 2023, arXiv 2202.00433 (TotientPerms and SelectPermutations).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations

import numpy as np

_MOST_TRIED = 1 << 20
"""Choices of strides times servers: a second or two."""


def candidates(servers: int, group: int) -> list[int]:
    """Strides of rings through groups of ``group`` of so many servers, ascending, below ``servers``."""
    return [servers // group * k for k in range(1, group) if math.gcd(k, group) == 1]


def spread(servers: int, group: int, count: int) -> list[int]:
    """``count`` strides, as the paper chooses them; fewer, where there are not so many."""
    free = [one for one in candidates(servers, group) if 2 * one <= servers]
    every = candidates(servers, group)
    if not count or count >= len(free):
        return free[:count]
    ratio = (every[-1] / every[0]) ** (1 / count)
    chosen: list[int] = []
    for power in range(count):
        # One step of the other way round is the same ring: a stride and what it lacks of all are one.
        left = [one for one in every if one not in chosen and servers - one not in chosen]
        wanted = every[0] * ratio**power
        chosen.append(next((one for one in left if one >= wanted - 1e-9), left[-1]))
    return sorted(min(one, servers - one) for one in chosen)


@cache
def best(servers: int, group: int, count: int) -> tuple[int, ...] | None:
    """The ``count`` strides with the smallest diameter, then fewest hops on average, then lowest; None: there
    are too many to try.

    The smallest stride is taken as the first: servers can be numbered so that it is.
    """
    first, *others = [one for one in candidates(servers, group) if 2 * one <= servers] or [1]
    count = min(count, len(others) + 1)
    if not count:
        return ()
    if math.comb(len(others), count - 1) * group > _MOST_TRIED:
        return None
    unit = servers // group
    tried = ((first, *rest) for rest in combinations(others, count - 1))
    return min(tried, key=lambda one: (*hops(group, [each // unit for each in one]), one))


def hops(servers: int, strides: Iterable[int]) -> tuple[int, float]:
    """(Diameter, mean over pairs) in links, both ways round; (0, inf) where not all are reached."""
    steps = np.array(sorted({way for one in strides for way in (one % servers, -one % servers)}))
    far = np.full(servers, -1)
    far[0], level, here = 0, 0, np.zeros(1, np.int64)
    while len(here):
        level += 1
        there = np.unique((here[:, None] + steps[None, :]) % servers)
        here = there[far[there] < 0]
        far[here] = level
    if (far < 0).any():
        return 0, math.inf
    return int(far.max()), float(far.sum()) / max(servers - 1, 1)


def connects(servers: int, strides: Sequence[int], pairs: Sequence[Sequence[int]] = ()) -> bool:
    """Whether links by strides, and pairs of servers, leave one piece."""
    label = np.arange(servers)
    src = np.concatenate([*(np.arange(servers) for _ in strides), np.array([a for a, _ in pairs], np.int64)])
    dst = np.concatenate(
        [*((np.arange(servers) + s) % servers for s in strides), np.array([b for _, b in pairs], np.int64)]
    )
    while True:
        before = label.copy()
        np.minimum.at(label, src, label[dst])
        np.minimum.at(label, dst, label[src])
        label = label[label]
        if (label == before).all():
            return bool((label == 0).all())
