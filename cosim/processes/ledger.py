"""Who has whose data of a collective that code carries: what is proved of it as it runs.

Each node gathers (what comes is added to what it has) and has results (what comes takes the place of what it
had). Values are sets of ranks, so that nothing that is added twice or not at all looks right. What is sent
while it comes in is looked up when a rank is through: by then its source must have had it.

So a run that ends has done what the collective promises, with the messages and in the order of that run;
of other orders nothing is said.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence

from simpy.events import Event

from cosim.pattern.template import Collective

Part = tuple[int, int, int]
"""First byte, first byte behind it, and whose data it is: a bit for each rank."""


class ByteMasks:
    """Sets of ranks by byte: ``masks[k]`` from ``starts[k]`` on, until the next."""

    def __init__(self) -> None:
        self.starts, self.masks = [0], [0]

    def read(self, begin: int, end: int) -> Iterator[Part]:
        """What bytes hold, piece by piece."""
        at = bisect_right(self.starts, begin) - 1
        while begin < end:
            after = self.starts[at + 1] if at + 1 < len(self.starts) else end
            yield begin, min(after, end), self.masks[at]
            begin, at = min(after, end), at + 1

    def write(self, begin: int, end: int, mask: int) -> None:
        """Have bytes hold this."""
        first, last = self._cut(begin), self._cut(end)
        self.starts[first:last], self.masks[first:last] = [begin], [mask]

    def _cut(self, at: int) -> int:
        """The number of the piece that begins there, which is made."""
        found = bisect_left(self.starts, at)
        if found == len(self.starts) or self.starts[found] != at:
            self.starts.insert(found, at)
            self.masks.insert(found, self.masks[found - 1])
        return found


class Ledger:
    """What each node has of one collective."""

    def __init__(self, kind: Collective, size_bytes: int, root: int, endpoints: Sequence[int]) -> None:
        self._kind, self._size, self._root, self._endpoints = kind, size_bytes, root, endpoints
        self._gathered: dict[int, ByteMasks] = {}
        self._results: dict[int, ByteMasks] = {}
        self._streamed: dict[tuple[int, bool], list[tuple[int, int, int]]] = {}
        self._twice = ""
        for position, node in enumerate(endpoints):
            begin, end = self._own(position)
            if begin < end:
                self._gathered.setdefault(node, ByteMasks()).write(begin, end, 1 << position)

    def _own(self, position: int) -> tuple[int, int]:
        """Bytes that a rank has at first."""
        size = self._size
        if self._kind in (Collective.ALL_GATHER, Collective.ALL_TO_ALL):
            return position * size, (position + 1) * size
        if self._kind is Collective.BROADCAST and position != self._root:
            return 0, 0
        return 0, 0 if self._kind is Collective.BARRIER else size

    def _due(self, position: int) -> Iterator[Part]:
        """What the collective promises a rank."""
        size, count = self._size, len(self._endpoints)
        ranks = range(count)
        share = position * size // count, (position + 1) * size // count
        if self._kind is Collective.ALL_REDUCE:
            yield 0, size, (1 << count) - 1
        elif self._kind is Collective.REDUCE_SCATTER:
            yield *share, (1 << count) - 1
        elif self._kind is Collective.BROADCAST:
            yield 0, size, 1 << self._root
        elif self._kind is Collective.ALL_GATHER:
            yield from ((rank * size, (rank + 1) * size, 1 << rank) for rank in ranks)
        elif self._kind is Collective.ALL_TO_ALL:
            yield from ((rank * size + share[0], rank * size + share[1], 1 << rank) for rank in ranks)

    def sent(
        self, src: int, dst: int, begin: int, end: int, *, adds: bool, streams: bool
    ) -> Callable[[Event], None]:
        """What is to be done when a message has come that is sent now."""
        if streams:
            return lambda _: self._streamed.setdefault((dst, adds), []).append((src, begin, end))
        parts = [*self._read(src, begin, end, adds=adds)]
        return lambda _: self._come(dst, parts, adds=adds)

    def lacks(self, position: int) -> str:
        """What is wrong with what a rank has, in words; empty: nothing."""
        node = self._endpoints[position]
        self._settle(node, adds=True)
        self._settle(node, adds=False)
        if self._twice:
            return f"is through, but {self._twice}"
        for begin, end, due in self._due(position):
            for first, last, has in self._read(node, begin, end, adds=False):
                if has != due:
                    missing, more = due & ~has, has & ~due
                    what = (
                        f"lack what {_some(missing)} had" if missing else f"have {_some(more)} in them, too"
                    )
                    return f"is through, but its bytes {first} to {last} {what}"
        return ""

    def _read(self, node: int, begin: int, end: int, *, adds: bool) -> Iterator[Part]:
        """What a node would send: what it has gathered, or a result, where it has one."""
        gathered = self._gathered.setdefault(node, ByteMasks())
        if adds or node not in self._results:
            yield from gathered.read(begin, end)
            return
        for first, last, mask in self._results[node].read(begin, end):
            if mask:
                yield first, last, mask
            else:
                yield from gathered.read(first, last)

    def _come(self, node: int, parts: Sequence[Part], *, adds: bool) -> None:
        into = (self._gathered if adds else self._results).setdefault(node, ByteMasks())
        for begin, end, mask in parts:
            if not adds:
                into.write(begin, end, mask)
                continue
            for first, last, before in [*into.read(begin, end)]:
                if before & mask:
                    self._twice = f"bytes {first} to {last} of {_some(before & mask)} were added twice"
                into.write(first, last, before | mask)

    def _settle(self, node: int, *, adds: bool) -> None:
        """Take in what came to a node while its source had not all of it."""
        for src, begin, end in self._streamed.pop((node, adds), ()):
            self._settle(src, adds=True)
            if not adds:
                self._settle(src, adds=False)
            self._come(node, [*self._read(src, begin, end, adds=adds)], adds=adds)


def _some(mask: int) -> str:
    """``position 3``."""
    positions = [at for at in range(mask.bit_length()) if mask >> at & 1]
    more = f" and {len(positions) - 1} more" if len(positions) > 1 else ""
    return f"position {positions[0]}{more}"
