"""Two jobs on one link, one served first: how much of the link each gets. Exact, in picoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_ROUNDS = 32
"""Periods of the longer that are looked at."""


@dataclass(frozen=True, slots=True)
class OnLink:
    """A job on a link: an iteration wants it after ``before_ps``, for ``link_ps``, and takes ``period_ps`` if
    it is not kept waiting; what is left of the period by then is computation that goes on meanwhile.
    """

    before_ps: int
    link_ps: int
    period_ps: int


def served_ps(first: OnLink, second: OnLink, until_ps: int) -> tuple[int, int]:
    """Time that the link works for each until then; ``first`` is never kept waiting, ``second`` gets what is
    left.
    """
    window = first.period_ps
    ends = first.before_ps + first.link_ps
    began, now, left, served = 0, second.before_ps, second.link_ps, 0
    while now < until_ps and second.link_ps:
        rounds, within = divmod(now, window)
        if first.before_ps <= within < ends:
            now = rounds * window + ends
            continue
        free_until = (rounds + (within >= ends)) * window + first.before_ps if first.link_ps else until_ps
        work = min(left, min(free_until, until_ps) - now)
        served, left, now = served + work, left - work, now + work
        if left == 0:
            began = max(began + second.period_ps, now)
            now, left = began + second.before_ps, second.link_ps
    rounds, within = divmod(until_ps, window)
    return rounds * first.link_ps + min(max(0, within - first.before_ps), first.link_ps), served


@lru_cache(maxsize=65536)
def gains_ps(one: OnLink, other: OnLink) -> tuple[int, int]:
    """How much more of the link each gets if it is served first than if the other is."""
    until = _ROUNDS * max(one.period_ps, other.period_ps)
    one_first, other_second = served_ps(one, other, until)
    other_first, one_second = served_ps(other, one, until)
    return one_first - one_second, other_first - other_second
