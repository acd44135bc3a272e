"""Two jobs on one link, one served first: how much of the link each gets. Exact, in picoseconds."""

from __future__ import annotations

from dataclasses import dataclass

_ROUNDS = 32
"""Periods of the longer that are looked at."""


@dataclass(frozen=True, slots=True)
class Alternating:
    """A job that needs nothing of the link for a while, then so much time of it, again and again."""

    apart_ps: int
    link_ps: int


def served_ps(first: Alternating, second: Alternating, until_ps: int) -> tuple[int, int]:
    """Time that the link works for each until then; ``first`` is never kept waiting, ``second`` gets what is
    left.
    """
    now = ready = left = served = 0
    period = first.apart_ps + first.link_ps
    ready, left = second.apart_ps, second.link_ps
    while now < until_ps and period > 0:
        # The link is free for the second from the end of one use by the first to the next.
        rounds, within = divmod(now, period)
        if within >= first.apart_ps and first.link_ps:
            now = (rounds + 1) * period
            continue
        free_until = min(rounds * period + first.apart_ps, until_ps) if first.link_ps else until_ps
        now = max(now, ready)
        if now >= free_until:
            now = max(now, free_until)
            continue
        work = min(left, free_until - now)
        served, left, now = served + work, left - work, now + work
        if left == 0:
            ready, left = now + second.apart_ps, second.link_ps
            if second.apart_ps + second.link_ps == 0:
                break
    rounds, within = divmod(until_ps, max(period, 1))
    return rounds * first.link_ps + max(0, within - first.apart_ps), served


def gains_ps(one: Alternating, other: Alternating) -> tuple[int, int]:
    """How much more of the link each gets if it is served first than if the other is."""
    until = _ROUNDS * max(one.apart_ps + one.link_ps, other.apart_ps + other.link_ps)
    one_first, other_second = served_ps(one, other, until)
    other_first, one_second = served_ps(other, one, until)
    return one_first - one_second, other_first - other_second
