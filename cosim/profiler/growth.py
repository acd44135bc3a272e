"""How a sequence of steps grows with a parameter: which blocks it has more of, and where.

Two sequences are aligned: the longer is the shorter with blocks put in. A block that is put
in is so many copies of one; a larger size has more of them after it, in proportion. What a step runs after
is told by its distance, or as the step that corresponds, whichever is the same at both sizes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

_Sequences = tuple[Sequence[Hashable], Sequence[Hashable]]
"""What steps are, and their numbers."""


class StructureError(Exception):
    """Profiles that do not grow in a way that is understood; the message says where."""


@dataclass(frozen=True)
class GrowthRow:
    """A predicted step. ``source``: the step of the largest fitted profile that it is like.

    ``samples``: the corresponding step of each fitted profile, or None; ``identity`` is the same at every
    size.
    """

    source: int
    samples: tuple[int | None, ...]
    deps: tuple[int, ...]
    identity: tuple[int, int]


@dataclass(frozen=True)
class _Insert:
    """Steps ``start`` to ``start + count * length`` of the larger are ``count`` copies that the smaller
    lacks.
    """

    start: int
    length: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.length * self.count


class Growth:
    """Sequences at ascending sizes (two or more); predicts the sequence at any size not below the last."""

    def __init__(
        self,
        sizes: Sequence[int],
        keys: Sequence[Sequence[Hashable]],
        numbers: Sequence[Sequence[Hashable]],
        deps: Sequence[Sequence[tuple[int, ...]]],
    ) -> None:
        self.sizes = list(sizes)
        self.length = len(keys[-1])
        rows = list(zip(keys, numbers, strict=True))
        self.inserts = _inserts(rows[-2], rows[-1])
        self._step = sizes[-1] - sizes[-2]
        self._deps = deps[-1]
        self._to_last: list[dict[int, int]] = []
        for smaller, size in zip(rows[:-1], sizes[:-1], strict=True):
            found = _inserts(smaller, rows[-1])
            grown = [(i.length, Fraction(i.count, sizes[-1] - size)) for i in found]
            if grown != [(i.length, Fraction(i.count, self._step)) for i in self.inserts]:
                raise StructureError("sizes do not grow by the same steps")
            self._to_last.append(_early(found, len(keys[-1])))
        early = _early(self.inserts, self.length)
        late = _late(self.inserts, self.length, keys[-2], keys[-1])
        self._kinds = [self._how(row, early, late, deps[-2], deps[-1]) for row in range(self.length)]

    def _how(
        self, row: int, early: dict[int, int], late: dict[int, int], before: Sequence[tuple[int, ...]],
        deps: Sequence[tuple[int, ...]],
    ) -> list[tuple[str, int]]:  # fmt: skip
        """How each dependency of a row is told: at a distance, or as a step counted early or late."""
        inside = next((i for i in self.inserts if i.start <= row < i.end), None)
        other = early.get(row)
        told: list[tuple[str, int]] = []
        if other is None:  # only the larger has it: compare with the copy before
            assert inside is not None
            previous = deps[row - inside.length] if row >= inside.length else ()
            for dep in deps[row]:
                if dep - inside.length in previous and row - dep <= row:
                    told.append(("distance", row - dep))
                elif dep in previous:
                    told.append(("early", dep))
                else:
                    told.append(("distance", row - dep))
            return told
        theirs = set(before[other])
        options = [
            [
                (told_as, image)
                for told_as, image in (
                    (("distance", row - dep), other - (row - dep)),
                    (("late", dep), late.get(dep)),
                    (("early", dep), early.get(dep)),
                )
                if image in theirs
            ]
            for dep in deps[row]
        ]
        chosen = _pairing(options, frozenset(theirs))
        if chosen is None:
            raise StructureError(
                f"step {row} runs after {list(deps[row])}, but at the smaller size after {sorted(theirs)}"
            )
        return chosen

    def at(self, size: int) -> list[GrowthRow]:
        """The steps at a size."""
        extras = [Fraction(i.count * (size - self.sizes[-1]), self._step) for i in self.inserts]
        if any(e.denominator != 1 or e < 0 for e in extras):
            raise StructureError(f"a block would be there {[str(e) for e in extras]} times more")
        more = {insert: int(e) for insert, e in zip(self.inserts, extras, strict=True)}
        order: list[tuple[int, int]] = []  # step of the last fitted profile, which extra copy (0: its own)
        at = 0
        for insert in self.inserts:
            order.extend((row, 0) for row in range(at, insert.end))
            block = range(insert.end - insert.length, insert.end)
            order.extend((row, copy + 1) for copy in range(more[insert]) for row in block)
            at = insert.end
        order.extend((row, 0) for row in range(at, self.length))
        place = {where: number for number, where in enumerate(order)}
        rows = []
        for number, (row, copy) in enumerate(order):
            deps = set()
            for kind, value in self._kinds[row]:
                if kind == "distance":
                    deps.add(number - value)
                elif kind == "early":
                    deps.add(place[value, 0])
                else:
                    deps.add(self._late_place(value, place, more))
            if any(not 0 <= dep < len(order) for dep in deps):
                raise StructureError(f"step {number} would run after a step that isn't there")
            samples = tuple(back.get(row) if copy == 0 else None for back in self._to_last)
            rows.append(GrowthRow(row, (*samples, row), tuple(sorted(deps)), (row, copy)))
        return rows

    def _late_place(self, row: int, place: dict[tuple[int, int], int], more: dict[_Insert, int]) -> int:
        """A step counted from the end of the block that it may be in: of the last copy."""
        insert = next((i for i in self.inserts if i.start <= row < i.end), None)
        extra = 0 if insert is None else more[insert]
        if insert is None or extra == 0:
            return place[row, 0]
        if row >= insert.end - insert.length:
            return place[row, extra]
        ahead = (insert.end - 1 - row) // insert.length
        same = row + ahead * insert.length
        return place[same, extra - ahead] if extra > ahead else place[row + extra * insert.length, 0]


def _inserts(small: _Sequences, large: _Sequences) -> list[_Insert]:
    """Blocks that ``large`` has more of.

    Raises
    ------
    StructureError
        It isn't ``small`` with blocks put in.
    """
    found: list[_Insert] = []
    (less, less_numbers), (more, more_numbers) = small, large
    a = b = 0
    missing = len(more) - len(less)
    while True:
        while a < len(less) and b < len(more) and less[a] == more[b]:
            a, b = a + 1, b + 1
        if a == len(less) and b == len(more):
            return found
        if missing <= 0:
            raise StructureError(
                f"the larger has {_text(more, b)} where the smaller has {_text(less, a)} (step {b})"
            )
        best = _best_block(less, more, a, b, missing)
        if best is None:
            raise StructureError(
                f"from step {b} on nothing is repeated: {_text(more, b)} in the larger, {_text(less, a)} in"
                " the smaller"
            )
        count = best.length * best.count
        # The same steps come of a block put in somewhat earlier: where more numbers agree, it was there.
        gain = highest = back = 0
        for steps in range(1, b - (found[-1].end if found else 0) + 1):
            if less[a - steps] != more[b - steps + count]:
                break
            mine = less_numbers[a - steps]
            gain += (mine == more_numbers[b - steps + count]) - (mine == more_numbers[b - steps])
            if gain > highest:
                highest, back = gain, steps
        put_in = range(b - back, b - back + count)
        rows = [(more[row], more_numbers[row]) for row in put_in]
        period = next(p for p in range(1, count + 1) if count % p == 0 and rows[p:] == rows[: count - p])
        found.append(_Insert(put_in.start, period, count // period))
        b += count
        missing -= count


def _best_block(
    small: Sequence[Hashable], large: Sequence[Hashable], a: int, b: int, missing: int
) -> _Insert | None:
    """Copies of the block just before ``large[b]`` that are put in there, such that the two then agree
    longest.
    """
    best, longest = None, -1
    for length in range(1, min(b, missing) + 1):
        if large[b - length] != large[b]:
            continue
        copies = 0
        while (copies + 1) * length <= missing and all(
            large[b + copies * length + k] == large[b - length + k] for k in range(length)
        ):
            copies += 1
            at = b + copies * length
            run = 0
            limit = min(len(small) - a, len(large) - at)
            while run < limit and small[a + run] == large[at + run]:
                run += 1
            if run > longest:
                best, longest = _Insert(b, length, copies), run
    return best


def _pairing(
    options: Sequence[Sequence[tuple[tuple[str, int], int | None]]], left: frozenset[int]
) -> list[tuple[str, int]] | None:
    """One option of each, such that each of ``left`` is meant once; the first options where there is a
    choice.
    """
    if not options:
        return None if left else []
    for told_as, image in options[0]:
        if image in left:
            rest = _pairing(options[1:], left - {image})
            if rest is not None:
                return [told_as, *rest]
    return None


def _early(inserts: Sequence[_Insert], length: int) -> dict[int, int]:
    """Larger's step -> smaller's, where what is put in comes as late as it can."""
    found: dict[int, int] = {}
    at = shift = 0
    for insert in inserts:
        for row in range(at, insert.start):
            found[row] = row - shift
        at = insert.end
        shift += insert.length * insert.count
    for row in range(at, length):
        found[row] = row - shift
    return found


def _late(
    inserts: Sequence[_Insert], length: int, small: Sequence[Hashable], large: Sequence[Hashable]
) -> dict[int, int]:
    """Larger's step -> smaller's, where what is put in comes as early as it can."""
    found = _early(inserts, length)
    shift = 0
    for insert in inserts:
        size = insert.length * insert.count
        row = insert.end - 1
        other = insert.start - shift - 1
        while other >= 0 and row >= insert.start and small[other] == large[row]:
            found[row] = other
            row, other = row - 1, other - 1
        shift += size
    return found


def _text(keys: Sequence[Hashable], place: int) -> str:
    return str(keys[place]) if place < len(keys) else "the end"
