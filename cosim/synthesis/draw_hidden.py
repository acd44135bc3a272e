"""Operations of a hidden rank: each band's classes dealt over its levels. Each operation waits for one
that is lower, of a class that such operations wait for.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from cosim.synthesis.model import Band, Hidden, RankOperations, TraceModel

Way = tuple[int, ...]
"""What all ends of a communication say: whose sizes are drawn from, family, peer, tag, how manieth it is."""
_NEAR = 64
"""Operations among which one that is waited for is looked for."""


def drawn_operations(
    model: TraceModel, hidden: Hidden, sizes: dict[Way, int], random: np.random.Generator
) -> RankOperations:
    """Draw a role's operations; ``sizes`` is what :func:`talk_sizes` gives."""
    return _Drawer(model, hidden, sizes, random).operations()


class _Drawer:
    def __init__(
        self, model: TraceModel, hidden: Hidden, sizes: dict[Way, int], random: np.random.Generator
    ) -> None:
        self._model, self._hidden, self._sizes, self._random = model, hidden, sizes, random
        self._weight = {(a, b): times for a, b, times in model.follows}
        self._kinds: list[int] = []
        self._level: list[int] = []
        self._back: list[list[int]] = []
        self._at_level: dict[int, list[int]] = defaultdict(list)
        self._place: dict[int, int] = {}
        self._below: list[int] = []

    def operations(self) -> RankOperations:
        """All of them."""
        talks: dict[int, list[int]] = defaultdict(list)
        waited: dict[int, list[int]] = defaultdict(list)
        for number, talk in enumerate(self._hidden.talks):
            talks[talk.level].append(number)
            waited[talk.waited].append(number)
        level, due, last = 0, list[int](), None
        for band in self._hidden.bands:
            told = [talks[level + number] for number in range(band.levels)]
            for number, kinds in enumerate(self._dealt(band, level, told)):
                due += waited[level]
                ended = {self._place[one] for one in due if one in self._place}
                due = [one for one in due if not kinds or one not in self._place]
                for kind in kinds:
                    self._add(kind, level, ended)
                    if self._at_level[level - 1]:  # else all of this level wait for communications only
                        ended = set()
                for one in told[number]:
                    kind = self._hidden.talks[one].kind
                    chained = self._model.kinds[kind].kind == "collective"
                    self._place[one] = len(self._kinds)
                    self._add(kind, level, {last} if chained and last is not None else set())
                    last = self._place[one] if chained else last
                level += 1
        return self._columns()

    def _dealt(self, band: Band, start: int, told: list[list[int]]) -> list[list[int]]:
        """Kinds at each level of a band: evenly with the communications, chosen by what is a level lower."""
        found: list[list[int]] = [[] for _ in range(band.levels)]
        streams: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for kind, count, _ in band.kinds:
            streams[self._model.kinds[kind].stream].append((kind, count))
        waited = [
            [self._hidden.talks[one].waited == level + 1 for one in there]
            for level, there in enumerate(told, start)
        ]
        # A level whose communications nothing waits for one level on would end the chain; those without any
        # communication come first.
        load = [2 * sum(there) + len(there) for there in waited]
        for own in sorted(streams.values(), key=lambda own: -sum(count for _, count in own)):
            kinds, left = [kind for kind, _ in own], np.array([count for _, count in own])
            for level in _levels(int(left.sum()), load):
                below = found[level - 1] if level else self._below
                share = left * np.array(
                    [sum(self._weight.get((a, b), 0) for a in below) for b in kinds], float
                )
                share = share if share.sum() else left.astype(float)
                one = int(self._random.choice(len(kinds), p=share / share.sum()))
                left[one] -= 1
                found[level].append(kinds[one])
            load = [len(dealt) + len(there) for dealt, there in zip(found, told, strict=True)]
        self._below = found[-1]
        return found

    def _add(self, kind: int, level: int, waits: set[int]) -> None:
        before = self._before(kind, level)
        if before is not None:
            waits = waits | {before}
        waits = waits | self._more(self._model.waits[kind] - len(waits), level)
        at = len(self._kinds)
        self._kinds.append(kind)
        self._back.append(sorted(at - other for other in waits))
        own = 1 + max((self._level[other] for other in waits), default=-1)
        self._level.append(own)
        if self._model.kinds[kind].kind == "compute":
            self._at_level[level].append(at)

    def _before(self, kind: int, level: int) -> int | None:
        """A computation of the next lower level, of a class that such ones wait for if there is one."""
        below = level - 1
        while below >= 0 and not self._at_level[below]:
            below -= 1
        if below < 0:
            return None
        there = self._at_level[below]
        weights = np.array([self._weight.get((self._kinds[at], kind), 0) for at in there], float) + 1e-6
        return there[int(self._random.choice(len(there), p=weights / weights.sum()))]

    def _more(self, wanted: float, level: int) -> set[int]:
        """Others of the last computations that lie lower: as many as are wanted, on average."""
        count = int(wanted) + int(self._random.random() < wanted % 1) if wanted > 0 else 0
        first = max(len(self._kinds) - _NEAR, 0)
        if not count or first == len(self._kinds):
            return set()
        found = {first + int(one) for one in self._random.integers(0, len(self._kinds) - first, count)}
        computes = ("compute",)
        return {
            one
            for one in found
            if self._level[one] < level and self._model.kinds[self._kinds[one]].kind in computes
        }

    def _columns(self) -> RankOperations:
        model, count = self._model, len(self._kinds)
        size, peer, tag, root = ([0] * count for _ in range(4))
        for number, (talk, key) in enumerate(
            zip(self._hidden.talks, _ways(model, self._hidden), strict=True)
        ):
            at = self._place[number]
            size[at], peer[at], tag[at], root[at] = self._sizes[key], talk.peer, talk.tag, talk.root
        times = [kind if model.kinds[kind].kind == "compute" else -1 for kind in self._kinds]
        return RankOperations(
            kind=self._kinds, alike=self._kinds, times=times, size_bytes=size, back=self._back,
            peer=peer, tag=tag, root=root, blocks=[],
        )  # fmt: skip


def _levels(count: int, load: list[int]) -> list[int]:
    """Levels of so many operations, ascending: as many on each, and the rest where the ``load`` is least."""
    each, rest = divmod(count, len(load))
    chosen = [level for level in range(len(load)) for _ in range(each)]
    for least in sorted({*load}):
        there = [level for level, one in enumerate(load) if one == least]
        taken = min(rest, len(there))
        chosen += [there[one * len(there) // taken] for one in range(taken)]
        rest -= taken
    return sorted(chosen)


def talk_sizes(model: TraceModel, seed: int, share: float) -> dict[Way, int]:
    """The size of each communication: a class's values in equal shares, so that its bytes are about kept;
    ``share`` times it where it stands for all layers.
    """
    times: Counter[Way] = Counter()
    factor: dict[Way, float] = {}
    for role in model.roles:
        if role.hidden is not None:
            for talk, way in zip(role.hidden.talks, _ways(model, role.hidden), strict=True):
                times[way] += len(role.ranks)
                factor[way] = share if talk.all_layers else 1.0
    random = np.random.default_rng([seed, 3])
    sizes: dict[Way, int] = {}
    for kind in sorted({way[0] for way in times}):
        ways = sorted(way for way in times if way[0] == kind)
        order = sorted(random.permutation(len(ways)).tolist(), key=lambda one: -times[ways[one]])
        values = random.permutation(model.sizes_bytes[kind]).tolist()
        given = [0] * len(values)
        for one in order:
            least = min(range(len(values)), key=lambda value: given[value])
            given[least] += times[ways[one]]
            sizes[ways[one]] = round(values[least] * factor[ways[one]])
    return sizes


def _ways(model: TraceModel, hidden: Hidden) -> list[Way]:
    """The way of each communication of a rank."""
    seen: Counter[tuple[object, ...]] = Counter()
    send = next((number for number, one in enumerate(model.kinds) if one.kind == "send"), -1)
    found: list[Way] = []
    for talk in hidden.talks:
        kind = model.kinds[talk.kind]
        receives = kind.kind == "recv"
        way = send if receives else talk.kind, kind.family, -talk.peer if receives else talk.peer, talk.tag
        found.append((*way, seen[receives, way]))
        seen[receives, way] += 1
    return found
