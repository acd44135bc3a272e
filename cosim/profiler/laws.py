"""Laws of one number: the simplest, in exact fractions, that all small sizes follow with a point to spare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from cosim.profiler.growth import StructureError

_Terms = Callable[[int], tuple[Fraction, ...]]
_BASES: tuple[_Terms, ...] = (
    lambda x: (Fraction(1), Fraction(x)),
    lambda x: (Fraction(1), Fraction(1, x)),
    lambda x: (Fraction(x), Fraction(x * x)),
    lambda x: (Fraction(1), Fraction(x * x)),
    lambda x: (Fraction(1), Fraction(x), Fraction(x * x)),
    lambda x: (Fraction(1), Fraction(x), Fraction(1, x)),
)


def law_of(sizes: Sequence[int], values: Sequence[int], what: str) -> Callable[[int], int]:
    """The simplest law through all points that has a point to spare.

    Raises
    ------
    StructureError
        None is.
    """
    if len(set(values)) == 1:
        constant = values[0]
        return lambda _: constant
    for terms in _BASES:
        count = len(terms(1))
        if count >= len(sizes):
            continue
        weights = _solve([terms(x) for x in sizes[:count]], [Fraction(v) for v in values[:count]])
        if weights is None:
            continue
        if all(
            sum(w * t for w, t in zip(weights, terms(x), strict=True)) == v
            for x, v in zip(sizes, values, strict=True)
        ):
            return _Polynomial(terms, weights, what)
    raise StructureError(f"{what} is {', '.join(map(str, values))}, which follows no law")


class _Polynomial:
    def __init__(self, terms: _Terms, weights: Sequence[Fraction], what: str) -> None:
        self.terms, self.weights, self.what = terms, weights, what

    def __call__(self, size: int) -> int:
        value = sum(w * t for w, t in zip(self.weights, self.terms(size), strict=True))
        exact = Fraction(value)
        if exact.denominator != 1:
            raise StructureError(f"{self.what} would be {float(exact):g}, which is no whole number")
        return int(exact)


def _solve(rows: Sequence[Sequence[Fraction]], values: Sequence[Fraction]) -> list[Fraction] | None:
    """Gauss, in fractions."""
    table = [[*row, value] for row, value in zip(rows, values, strict=True)]
    for column in range(len(table)):
        pivot = next((r for r in range(column, len(table)) if table[r][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [v / table[column][column] for v in table[column]]
        for other in range(len(table)):
            if other != column and table[other][column]:
                factor = table[other][column]
                table[other] = [a - factor * b for a, b in zip(table[other], table[column], strict=True)]
    return [row[-1] for row in table]
