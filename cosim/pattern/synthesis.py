"""Which link carries which chunk when, found link by link as time goes on (TACOS).

Every rank holds chunks that all others want. Whenever links become idle, pairs (chunk, destination) are
taken in random order; each is matched to an idle link into the destination whose source has the chunk. A
link is busy for its latency and the chunk's bytes over its rate. Of several tries the quickest counts.
Source: W. Won, M. Elavazhagan, S. Srinivasan, S. Gupta and T. Krishna, "TACOS: Topology-Aware Collective
Algorithm Synthesizer for Distributed Machine Learning", MICRO 2024, arXiv 2304.05301. No time is less than
ceil(chunks to come in / links in) sends over the links of the rank that has fewest.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cosim.errors import AlgorithmError
from cosim.pattern.group_links import Link
from cosim.pattern.template import I32, I64
from cosim.units import PS_PER_S


@dataclass(frozen=True, eq=False, slots=True)
class SendSchedule:
    """An all-gather's sends in the order in which they begin.

    ``src``, ``dst``, ``chunk`` int32[sends]; chunk c is rank c // (chunks a rank)'s. ``begin_ps``
    int64[sends]; ``end_ps`` is when the last one has arrived. Two schedules are equal where they are the same
    object.
    """

    num_ranks: int
    chunks: int
    src: I32
    dst: I32
    chunk: I32
    begin_ps: I64
    end_ps: int


@lru_cache(maxsize=64)
def synthesise(
    links: tuple[Link, ...], num_ranks: int, chunks: int, chunk_bytes: int, tries: int
) -> SendSchedule:
    """The quickest of so many tries; the same arguments give the same schedule.

    Raises
    ------
    AlgorithmError
        Some rank can't be reached from some other.
    """
    took = [latency + _carry_ps(chunk_bytes, rate) for _, _, rate, latency in links]
    ends = [link[:2] for link in links]
    _check_reach(ends, num_ranks)
    least = _least_ps(ends, took, num_ranks, chunks)
    found = _one_try(ends, took, num_ranks, chunks, 0)
    for seed in range(1, tries):
        if found.end_ps == least:
            break
        found = min(found, _one_try(ends, took, num_ranks, chunks, seed), key=lambda one: one.end_ps)
    return found


def _least_ps(ends: list[tuple[int, int]], took: list[int], num_ranks: int, chunks: int) -> int:
    """No schedule ends sooner: when the links into each rank can have brought all it lacks."""
    due = (num_ranks - 1) * chunks
    into: list[list[int]] = [[] for _ in range(num_ranks)]
    for (_, dst), each in zip(ends, took, strict=True):
        into[dst].append(each)
    worst = 0
    for links in into:
        low, high = 0, due * min(links)
        while low < high:
            middle = (low + high) // 2
            enough = sum(middle // each for each in links) >= due
            low, high = (low, middle) if enough else (middle + 1, high)
        worst = max(worst, low)
    return worst


def _carry_ps(size_bytes: int, rate_bps: float) -> int:
    return max(1, round(size_bytes * 8 * PS_PER_S / rate_bps))


def _check_reach(ends: Sequence[tuple[int, int]], num_ranks: int) -> None:
    for way in (0, 1):
        reached, found = {0}, [0]
        while found:
            here = found.pop()
            new = {pair[1 - way] for pair in ends if pair[way] == here} - reached
            reached |= new
            found += new
        for rank in sorted(set(range(num_ranks)) - reached)[:1]:
            pair = (0, rank) if way == 0 else (rank, 0)
            raise AlgorithmError(
                f"tacos: the links between the group's {num_ranks} ranks don't lead from rank {pair[0]} to "
                f"rank {pair[1]}",
                hint="it needs a group whose endpoints are linked to one another, or to the same switches",
            )


def _one_try(
    ends: list[tuple[int, int]], took: list[int], num_ranks: int, chunks: int, seed: int
) -> SendSchedule:
    rng = random.Random(seed)
    into: list[list[int]] = [[] for _ in range(num_ranks)]
    out: list[list[int]] = [[] for _ in range(num_ranks)]
    for number, (src, dst) in enumerate(ends):
        into[dst].append(number)
        out[src].append(number)
    own = (1 << chunks) - 1
    has = [own << (rank * chunks) for rank in range(num_ranks)]
    every = (1 << (chunks * num_ranks)) - 1
    wanted = [every & ~mask for mask in has]  # neither there nor on the way
    idle = [True] * len(ends)
    arrivals: list[tuple[int, int, int]] = []
    sends: list[tuple[int, int, int]] = []
    now, changed = 0, set(range(num_ranks))
    while True:
        order = sorted(changed)
        rng.shuffle(order)
        for rank in order:
            for link, chunk in _matched(rank, into[rank], ends, idle, has, wanted, rng):
                idle[link] = False
                wanted[rank] &= ~(1 << chunk)
                sends.append((now, link, chunk))
                heapq.heappush(arrivals, (now + took[link], link, chunk))
        if not arrivals:
            break
        now = arrivals[0][0]
        changed = set()
        while arrivals and arrivals[0][0] == now:
            _, link, chunk = heapq.heappop(arrivals)
            src, dst = ends[link]
            has[dst] |= 1 << chunk
            idle[link] = True
            changed.add(dst)
            changed.update(ends[each][1] for each in out[dst])
    begin, over, what = (np.array(column, np.int64) for column in zip(*sends, strict=True))
    pairs = np.array(ends, np.int32)[over]
    return SendSchedule(num_ranks, chunks, pairs[:, 0], pairs[:, 1], what.astype(np.int32), begin, now)


def _matched(
    rank: int,
    into: list[int],
    ends: list[tuple[int, int]],
    idle: list[bool],
    has: list[int],
    wanted: list[int],
    rng: random.Random,
) -> list[tuple[int, int]]:
    """(Link, chunk) for the idle links into a rank: as if wanted chunks came in random order, each taking any
    idle link whose source has it.
    """
    free = [link for link in into if idle[link]]
    want, found = wanted[rank], []
    while free:
        could = 0
        for link in free:
            could |= has[ends[link][0]]
        could &= want
        if not could:
            break
        chunk = _any_bit(could, rng)
        link = rng.choice([one for one in free if has[ends[one][0]] >> chunk & 1])
        found.append((link, chunk))
        free.remove(link)
        want &= ~(1 << chunk)
    return found


def _any_bit(mask: int, rng: random.Random) -> int:
    """The number of one of the bits that are set, each as likely."""
    skip = rng.randrange(mask.bit_count())
    for _ in range(skip):
        mask &= mask - 1
    return (mask & -mask).bit_length() - 1
