"""Multiply the repeated blocks of a rank's operations."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import accumulate, pairwise
from math import floor

from cosim.synthesis.model import Band, Hidden, RankOperations, TraceModel

Key = tuple[int, int]
"""A place in a block: which operation it is, of those that are alike the how manieth."""


def repeated(own: RankOperations, layers: float) -> RankOperations:
    """Operations with ``layers`` times as many blocks, each copy beside the block that it was made from.

    What waited for the block before waits for the copy before; what waited for a block from elsewhere waits
    for all its copies, or where it has none, for the nearest block before it.
    """
    return own if layers == 1 else _Repeater(own, layers).operations()


def stretched(model: TraceModel, layers: float) -> TraceModel:
    """A model whose hidden ranks have ``layers`` times as many operations in repeated blocks, and levels
    for these. Copies of a communication are neighbours, so that all ranks have one order.
    """
    if layers == 1:
        return model
    roles = [
        role
        if role.hidden is None
        else role.model_copy(update={"hidden": _stretched(model, role.hidden, layers)})
        for role in model.roles
    ]
    return model.model_copy(update={"roles": roles})


def _stretched(model: TraceModel, hidden: Hidden, layers: float) -> Hidden:
    seen: Counter[int] = Counter()

    def times(kind: int, repeats: int) -> int:
        """How many the next repeated operations of a kind become."""
        seen[kind] += repeats
        return floor(seen[kind] * layers + 1e-9) - floor((seen[kind] - repeats) * layers + 1e-9)

    first = [0, *accumulate(band.levels for band in hidden.bands)]
    copies = [times(talk.kind, 1) if talk.repeats else 1 for talk in hidden.talks]
    inside = [bisect_right(first, talk.level) - 1 for talk in hidden.talks]
    had = Counter(inside)
    makes = Counter(band for band, number in zip(inside, copies, strict=True) for _ in range(number))
    bands = []
    for number, band in enumerate(hidden.bands):
        kinds = [(kind, count - repeats + times(kind, repeats), 0) for kind, count, repeats in band.kinds]
        had[number] += sum(count for _, count, _ in band.kinds)
        makes[number] += sum(count for _, count, _ in kinds)
        widest = -(-had[number] // band.levels)  # so many on a level, where they are dealt evenly
        levels = max(round(band.levels * makes[number] / had[number]), -(-makes[number] // widest), 1)
        bands.append(Band(levels=levels, kinds=[one for one in kinds if one[1]]))
    begin = [0, *accumulate(band.levels for band in bands)]

    def moved(level: int, part: float) -> int:
        """Where a part of a level's way to the next one is now."""
        band = bisect_right(first, level) - 1
        far = (level - first[band] + part) * bands[band].levels / hidden.bands[band].levels
        return min(begin[band] + floor(far + 1e-9), begin[-1] - 1)

    talks = []
    taken: dict[int, tuple[int, int]] = {}
    for talk, number in zip(hidden.talks, copies, strict=True):
        for copy in range(number):
            level = moved(talk.level, copy / number)
            while taken.setdefault(level, (talk.level, copy)) != (talk.level, copy) and level < begin[-1] - 1:
                level += 1  # what was apart stays apart
            waited = -1 if talk.waited < 0 else max(moved(talk.waited - 1, (copy + 1) / number), level + 1)
            talks.append(talk.model_copy(update={"level": level, "waited": waited}))
    before, after = (_totals(model, bands) for bands in (hidden.bands, bands))
    totals = {one: round(total * after[one] / before[one]) for one, total in hidden.totals_ps.items()}
    return Hidden(totals_ps=totals, bands=bands, talks=talks)


def _totals(model: TraceModel, bands: list[Band]) -> dict[str, float]:
    """All durations on each stream, by their means."""
    found: dict[str, float] = defaultdict(float)
    for band in bands:
        for kind, count, _ in band.kinds:
            times = model.times_ps[kind]
            found[model.kinds[kind].stream] += count * sum(times) / len(times)
    return found


class _Repeater:
    def __init__(self, own: RankOperations, layers: float) -> None:
        self._own, self._layers = own, layers
        self._row: dict[int, tuple[int, int]] = {}
        self._key: dict[int, Key] = {}
        self._at: dict[tuple[int, int], dict[Key, int]] = {}
        for row, begins in enumerate(own.blocks):
            for block, (begin, end) in enumerate(pairwise(begins)):
                seen: Counter[int] = Counter()
                places = self._at[row, block] = {}
                for at in range(begin, end):
                    key = self._key[at] = own.alike[at], seen[own.alike[at]]
                    seen[own.alike[at]] += 1
                    self._row[at] = row, block
                    places[key] = at
        self._copies: dict[int, list[int]] = defaultdict(list)
        self._emitted: dict[int, list[dict[Key, int]]] = defaultdict(list)
        self._columns: dict[str, list[object]] = defaultdict(list)

    def operations(self) -> RankOperations:
        """All of them."""
        at = 0
        while at < len(self._own.kind):
            if at not in self._row:
                self._emit(at, self._waits(at))
                at += 1
                continue
            row, block = self._row[at]
            begin, end = self._own.blocks[row][block : block + 2]
            for copy in range(self._last(block) - self._last(block - 1)):
                self._emitted[row].append({})
                for inside in range(begin, end):
                    self._emit(inside, self._waits(inside, self._pattern(row, block, copy, inside)))
            at = end
        return self._own.model_copy(update={**self._columns, "blocks": []})

    def _emit(self, at: int, waits: set[int]) -> None:
        here = len(self._columns["kind"])
        for name in ("kind", "alike", "times", "size_bytes", "peer", "tag", "root"):
            self._columns[name].append(getattr(self._own, name)[at])
        self._columns["back"].append(sorted(here - other for other in waits))
        self._copies[at].append(here)
        if at in self._row:
            self._emitted[self._row[at][0]][-1][self._key[at]] = here

    def _pattern(self, row: int, block: int, copy: int, at: int) -> int:
        """The operation whose dependencies a copy has: of the first block's copies those of the second's,
        since the first one waits for what is before all blocks.
        """
        return self._at[row, 1].get(self._key[at], at) if block == 0 and copy else at

    def _waits(self, at: int, pattern: int | None = None) -> set[int]:
        """Where an operation that is about to be written waits, by what ``pattern`` waits for."""
        pattern = at if pattern is None else pattern
        found: set[int] = set()
        for far in self._own.back[pattern]:
            before = pattern - far
            if before not in self._row:
                found |= {*self._copies[before]}
                continue
            row, block = self._row[before]
            emitted = self._emitted[row]
            if at in self._row and self._row[at][0] == row:
                one = len(emitted) - 1 - (self._row[pattern][1] - block)
                found |= self._in_block(emitted, one, before)
            elif self._copies[before]:
                found |= {*self._copies[before]}
            else:
                found |= self._in_block(emitted, self._last(block) - 1, before)
        return found

    def _in_block(self, emitted: list[dict[Key, int]], one: int, before: int) -> set[int]:
        """The operation's twin in the block that was written as that number, else the block's last."""
        if not 0 <= one < len(emitted) or not emitted[one]:
            return set()
        places = emitted[one]
        return {places.get(self._key[before], max(places.values()))}

    def _last(self, block: int) -> int:
        """How many blocks there are up to this one: the first one always has one."""
        return 0 if block < 0 else max(1, floor((block + 1) * self._layers + 1e-9))
