"""Learn with ``--hide k``: what is kept of sizes and durations is shared by k operations or more.

- Names become classes. Operations whose names differ in numbers only are a class of their own where there are
  k of them; the others of a stream are one class together.
- A class keeps means of its values, each of k values that lie beside each other.
- A class of fewer than k values keeps one mean, on a grid of 16 steps an octave: as few collectives as most
  jobs have couldn't be learned otherwise. Ranks whose traces are equal count once.
- No mean is kept that a rare value of the traces equals: it is moved by a microsecond or a byte.
- The order is kept as bands of neighbouring levels (an operation's level is the longest chain that it ends)
  with k operations or more, and as how often a class waits for a class. Communications keep their order and
  level, since all ranks have to agree on these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING

from cosim.formats.chakra.write_nodes import whole_us
from cosim.synthesis.model import Band, Family, Hidden, Kind, Role, Talk, TraceModel
from cosim.units import PS_PER_US

if TYPE_CHECKING:
    from cosim.synthesis.learn import LearnedRole

_STEPS = 16


def hidden_model(
    hide: int, ranks: int, families: list[Family], kinds: Sequence[Kind], roles: Sequence[LearnedRole]
) -> TraceModel:
    """The model of roles that were learned."""
    classes, class_of = _classes(hide, kinds, roles)
    times: list[list[int]] = [[] for _ in classes]
    sizes: list[list[int]] = [[] for _ in classes]
    follows: Counter[tuple[int, int]] = Counter()
    waits: Counter[int] = Counter()
    for role in roles:
        own = role.columns
        level = levels(own.back)
        for at, token in enumerate(own.alike):
            one = class_of[token, own.kind[at]]
            times[one] += [whole_us(int(row[at])) for row in role.times_ps]
            sizes[one].append(own.size_bytes[at])
            waits[one] += len(own.back[at])
            if own.back[at]:
                before = max((at - far for far in own.back[at]), key=lambda other: (level[other], other))
                follows[class_of[own.alike[before], own.kind[before]], one] += 1
    rare_times, rare_sizes = _rare(hide, times), _rare(hide, sizes)
    return TraceModel(
        hide=hide,
        ranks=ranks,
        families=families,
        kinds=classes,
        times_ps=[[one * PS_PER_US for one in _means(hide, values, rare_times)] for values in times],
        sizes_bytes=[_means(hide, values, rare_sizes) for values in sizes],
        follows=[(a, b, times) for (a, b), times in sorted(follows.items())],
        waits=[round(waits[one] / len(sizes[one]), 2) for one in range(len(classes))],
        roles=[_role(hide, kinds, classes, class_of, role) for role in roles],
    )


Step = tuple[str, int, int]
"""An operation by its class, size, and duration in whole microseconds."""


def class_steps(hide: int, kinds: Sequence[Kind], roles: Sequence[LearnedRole]) -> list[list[Step]]:
    """Each distinct rank's operations, in order, by the names that a hidden model has for them."""
    classes, class_of = _classes(hide, kinds, roles)
    found = []
    for role in roles:
        own = role.columns
        names = [classes[class_of[key]].name for key in zip(own.alike, own.kind, strict=True)]
        rows = role.times_ps.tolist()
        found += [[*zip(names, own.size_bytes, map(whole_us, row), strict=True)] for row in rows]
    return found


def levels(back: Sequence[Sequence[int]]) -> list[int]:
    """How long the longest chain is that each operation ends, from 0 on."""
    level: list[int] = []
    for at, far in enumerate(back):
        level.append(1 + max((level[at - one] for one in far), default=-1))
    return level


def _rare(hide: int, values: Sequence[Sequence[int]]) -> set[int]:
    times = Counter(value for own in values for value in own)
    return {value for value, count in times.items() if count < hide}


def _means(hide: int, values: list[int], rare: set[int]) -> list[int]:
    """Means of ``hide`` neighbours or more; none is a rare value."""
    ordered = sorted(values)
    bins = max(len(ordered) // hide, 1)
    found = []
    left = 0.0  # what rounding took, which the next mean is given
    for one in range(bins):
        part = ordered[one * len(ordered) // bins : (one + 1) * len(ordered) // bins]
        mean = sum(part) / len(part)
        if len(part) < hide and mean:
            mean = 2 ** (round(log2(mean) * _STEPS) / _STEPS)
        found.append(_beside(max(round(mean + left), 0), rare))
        left += mean - found[-1]
    return sorted(found)


def _beside(value: int, rare: set[int]) -> int:
    """The number that is nearest to a value and isn't rare."""
    far = 0
    while True:
        for one in (value + far, value - far):
            if one >= 0 and one not in rare:
                return one
        far += 1


def _classes(
    hide: int, kinds: Sequence[Kind], roles: Sequence[LearnedRole]
) -> tuple[list[Kind], dict[tuple[int, int], int]]:
    """Classes, and the class of each (token, kind)."""
    count: Counter[int] = Counter()
    members: dict[int, set[int]] = defaultdict(set)
    for role in roles:
        for token, kind in zip(role.columns.alike, role.columns.kind, strict=True):
            count[token] += len(role.times_ps)
            members[token].add(kind)
    classes: list[Kind] = []
    number: dict[tuple[object, ...], int] = {}
    class_of: dict[tuple[int, int], int] = {}
    for token in sorted(count):
        for kind in sorted(members[token]):
            one = kinds[kind]
            own = token if count[token] >= hide and one.kind == "compute" else -1
            key = (one.kind, one.stream, one.collective, one.family, one.access, own)
            if key not in number:
                number[key] = len(classes)
                name = f"{one.collective or one.access or one.kind} {len(classes)}"
                classes.append(one.model_copy(update={"name": name, "all_layers": False}))
            class_of[token, kind] = number[key]
    return classes, class_of


def _role(
    hide: int,
    kinds: Sequence[Kind],
    classes: Sequence[Kind],
    class_of: dict[tuple[int, int], int],
    role: LearnedRole,
) -> Role:
    own = role.columns
    level, repeats = levels(own.back), own.repeats()
    kind = [class_of[key] for key in zip(own.alike, own.kind, strict=True)]
    computes = [classes[one].kind == "compute" for one in kind]
    waited = [-1] * len(kind)
    for at, far in enumerate(own.back):
        for other in {at - one for one in far}:
            if computes[at] and not computes[other] and not 0 <= waited[other] <= level[at]:
                waited[other] = level[at]
    talks = [
        Talk(kind=kind[at], peer=own.peer[at], tag=own.tag[at], root=own.root[at], level=level[at],
             waited=waited[at], repeats=repeats[at], all_layers=kinds[own.kind[at]].all_layers)
        for at in range(len(kind))
        if not computes[at]
    ]  # fmt: skip
    at_level: dict[int, Counter[tuple[int, bool]]] = defaultdict(Counter)
    for at, one in enumerate(level):
        at_level[one][kind[at], repeats[at]] += computes[at]
    bands: list[tuple[int, Counter[tuple[int, bool]]]] = []
    first, inside = 0, Counter[tuple[int, bool]]()
    for one in range(max(level) + 1):
        inside += at_level[one]
        if inside.total() >= hide:
            bands.append((one + 1 - first, inside))
            first, inside = one + 1, Counter()
    if first <= max(level):
        rest = max(level) + 1 - first
        before, last = bands.pop() if bands else (0, Counter[tuple[int, bool]]())
        bands.append((before + rest, last + inside))
    totals: Counter[str] = Counter()
    for at, time in enumerate(role.times_ps.mean(axis=0).tolist()):
        totals[classes[kind[at]].stream] += int(time) if computes[at] else 0
    rounded = {stream: int(float(f"{total:.1e}")) for stream, total in sorted(totals.items()) if total}
    told = [
        Band(
            levels=levels,
            kinds=[
                (one, inside[one, False] + inside[one, True], inside[one, True])
                for one in sorted({one for one, _ in inside})
            ],
        )
        for levels, inside in bands
    ]
    return Role(
        ranks=role.ranks,
        alike=len(role.times_ps) == 1,
        hidden=Hidden(totals_ps=rounded, bands=told, talks=talks),
    )
