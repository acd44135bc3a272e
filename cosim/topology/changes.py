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
from typing import NamedTuple

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
            mine = [one for one in self.changes if number[one.link] >= 0]
            found = [one._replace(link=int(number[one.link])) for one in mine] or None
        return None if found is None else LinkChanges(found, self.detection_ps)

    def __iter__(self) -> Iterator[LinkChange | RouteChange]:
        """Changes of links, and what follows for routes; at one time, links come first."""
        dead: set[int] = set()
        heard: deque[RouteChange] = deque()
        for time_ps, together in groupby(self.changes, key=lambda one: one.time_ps):
            while heard and heard[0].time_ps < time_ps:
                yield heard.popleft()
            before = frozenset(dead)
            for one in together:
                (dead.discard if one.rate_bps > 0 else dead.add)(one.link)
                yield one
            if dead != before and self.detection_ps is not None:
                heard.append(RouteChange(time_ps + self.detection_ps, tuple(sorted(dead))))
            while heard and heard[0].time_ps <= time_ps:
                yield heard.popleft()
        yield from heard
