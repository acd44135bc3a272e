"""Links whose rate changes over time: that fail, slow down and come back.

A topology says so itself (:attr:`~cosim.topology.graph.Topology.changes`), so that every network that is
opened on it sees the same. Rates change at once; routes follow ``detection_ps`` later, after a failure as
after a repair, for that is how long it takes until the routing has heard. Not modelled: routers that hear
sooner than others, which for a while may send in circles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]

DETECTION_PS = 50_000_000
"""How long routing takes to hear of it, unless somebody says otherwise."""


class LinkChange(NamedTuple):
    """From ``time_ps`` on a link has ``rate_bps``; 0: it is dead."""

    time_ps: int
    link: int
    rate_bps: float


class DividedChanges(ABC):
    """Changes in order of (time, link) that can be told of some links alone, also where they never end."""

    @abstractmethod
    def __iter__(self) -> Iterator[LinkChange]:
        """All of them."""

    @abstractmethod
    def only(self, number: I32) -> Iterable[LinkChange] | None:
        """Those of links whose ``number`` is not -1, in these numbers, which ascend; None: there are none."""


class RouteChange(NamedTuple):
    """From ``time_ps`` on routes avoid the links ``dead``, ascending."""

    time_ps: int
    dead: tuple[int, ...]


class DeadLinks:
    """Which links are dead, by their changes, and when routing hears of it; ``detection_ps`` None: never."""

    def __init__(self, detection_ps: int | None) -> None:
        self._detection_ps = detection_ps
        self._dead: set[int] = set()

    def after(self, time_ps: int, changes: Iterable[LinkChange]) -> list[RouteChange]:
        """What follows for routes from all changes of an instant: nothing, or one change."""
        before = frozenset(self._dead)
        for one in changes:
            (self._dead.discard if one.rate_bps > 0 else self._dead.add)(one.link)
        if self._dead == before or self._detection_ps is None:
            return []
        return [RouteChange(time_ps + self._detection_ps, tuple(sorted(self._dead)))]


def changes_within(changes: Iterable[Any], number: I32) -> Iterator[Any]:
    """Changes of a part's links, in its ``number`` of each of the whole's (-1: not its own)."""
    for one in changes:
        if isinstance(one, RouteChange):
            yield one._replace(dead=tuple(int(number[link]) for link in one.dead if number[link] >= 0))
        elif number[one.link] >= 0:
            yield one._replace(link=int(number[one.link]))


@dataclass(frozen=True, eq=False)
class LinkChanges:
    """Changes in order of (time, link). May be iterated any number of times, and may never end.

    ``detection_ps`` None: routes stay as they are.
    """

    changes: Iterable[LinkChange]
    detection_ps: int | None = DETECTION_PS

    def part(self, number: I32) -> LinkChanges | None:
        """The changes of a part's links; None: of none. ``number``: the part's of each of the whole's, or -1.

        Changes that never end have to be :class:`DividedChanges`. Where none is known ahead, all may come.
        """
        if self.changes == ():
            return self
        found: Iterable[LinkChange] | None
        if isinstance(self.changes, DividedChanges):
            found = self.changes.only(number)
        else:
            found = [*changes_within(self.changes, number)] or None
        return None if found is None else LinkChanges(found, self.detection_ps)

    def __iter__(self) -> Iterator[LinkChange | RouteChange]:
        """Changes of links, and what follows for routes; at one time, links come first."""
        dead = DeadLinks(self.detection_ps)
        heard: deque[RouteChange] = deque()
        for time_ps, together in groupby(self.changes, key=lambda one: one.time_ps):
            while heard and heard[0].time_ps < time_ps:
                yield heard.popleft()
            now = [*together]
            yield from now
            heard += dead.after(time_ps, now)
            while heard and heard[0].time_ps <= time_ps:
                yield heard.popleft()
        yield from heard
