"""Finite fields GF(q), q = p^k: elements are 0 to q - 1, with coefficients of a polynomial as digits.

A primitive polynomial is looked for, so powers of x are all elements but 0: products are sums of logarithms.
Source: R. Lidl, H. Niederreiter, "Introduction to Finite Fields and Their Applications", 1994, chapters 2, 3,
doi:10.1017/CBO9781139172769.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np

from cosim.topology.graph import I64


class GaloisField:
    """GF(q). ``powers`` int64[q - 1]: of a generator of the field's products, from its 0th on."""

    def __init__(self, q: int) -> None:
        found = prime_power(q)
        if found is None:
            raise ValueError(f"{q} is no power of a prime")
        self.q = q
        self._p, self._k = found
        self.powers = np.array(_powers(self._p, self._k), np.int64)
        self._log = np.zeros(q, np.int64)
        self._log[self.powers] = np.arange(q - 1)

    def plus(self, one: I64, other: I64) -> I64:
        """Sums, element by element."""
        found, place = np.zeros(np.broadcast_shapes(one.shape, other.shape), np.int64), 1
        for _ in range(self._k):
            found += (one // place + other // place) % self._p * place
            place *= self._p
        return found

    def times(self, one: I64, other: I64) -> I64:
        """Products, element by element."""
        found = self.powers[(self._log[one] + self._log[other]) % (self.q - 1)]
        return np.where((one == 0) | (other == 0), 0, found)


@cache
def prime_power(q: int) -> tuple[int, int] | None:
    """(p, k) where q = p^k of a prime p; None: it is none."""
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    k, rest = 0, q
    while rest > 1 and rest % p == 0:
        rest //= p
        k += 1
    return (p, k) if k > 0 and rest == 1 else None


def _powers(p: int, k: int) -> list[int]:
    """Powers of x by the first polynomial by which these are all elements but 0."""
    places = [p**n for n in range(k)]
    for x_to_k in product(range(p), repeat=k):  # x^k, from x^(k - 1) down
        found, at = [1], [1] + [0] * (k - 1)
        while len(found) < p**k:
            lead, at = at[-1], [0, *at[:-1]]
            at = [(one + lead * more) % p for one, more in zip(at, reversed(x_to_k), strict=True)]
            code = sum(one * place for one, place in zip(at, places, strict=True))
            if code in (0, 1):
                break
            found.append(code)
        if len(found) == p**k - 1 and code == 1:
            return found
    raise AssertionError("every finite field has a primitive polynomial")  # pragma: no cover
