"""Rows by dense ids, in pages that go when all on them are done: memory follows what is in flight."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.kernel import kernel
from cosim.network.flows import I64

_BITS = kernel.PAGE_BITS
PAGE = 1 << _BITS
_MASK = PAGE - 1
_GONE = kernel.NONE


class Pages:
    """Rows of ids 0, 1, 2 ...; ``rows[slots(ids)]`` are theirs. A page of successive ids goes, and its slots
    are used again, when all of its rows are done and lie below ``oldest``. ``place`` says where each page is,
    ``left`` how many of its rows are not done.
    """

    def __init__(self, dtype: Any) -> None:
        self.rows: NDArray[Any] = np.zeros(PAGE, dtype)
        self._zero = np.zeros(1, dtype)
        self.count = 0
        self.oldest = 0
        self.place: I64 = np.full(64, _GONE, np.int64)
        self.left: I64 = np.zeros(64, np.int64)
        self._unused = [0]

    @property
    def held(self) -> int:
        """Rows that there is room for: a multiple of the page's size."""
        return len(self.rows)

    def slots(self, ids: I64) -> I64:
        """Where the rows of these ids are. Only of ids that are :meth:`there`."""
        return np.asarray(self.place[ids >> _BITS] + (ids & _MASK), np.int64)

    def there(self, ids: I64) -> NDArray[np.bool_]:
        """Which of these ids have rows; done ones may have."""
        known = np.asarray(ids.view(np.uint64) < self.count)  # one below 0 is a large number
        return np.asarray(known & (self.place[ids * known >> _BITS] != _GONE))

    def add(self, count: int) -> I64:
        """Slots of that many more, zeroed; their ids follow those before."""
        first = self.extend(count)
        slots = self.slots(np.arange(first, self.count))
        self.rows[slots] = self._zero
        return slots

    def extend(self, count: int) -> int:
        """The first id of that many more, whose rows are whatever was there before."""
        first = self.count
        self.count = first + count
        for page in range(-(-first // PAGE), -(-self.count // PAGE)):
            self._make(page)
        return first

    def _make(self, page: int) -> None:
        if page >= len(self.place):
            more = len(self.place)
            self.place = np.concatenate([self.place, np.full(more, _GONE)])
            self.left = np.concatenate([self.left, np.zeros(more, np.int64)])
        if not self._unused:
            have = len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros(have, self.rows.dtype)])
            self._unused = list(range(2 * have - PAGE, have - PAGE, -PAGE))
        self.place[page] = self._unused.pop()
        self.left[page] = PAGE

    def done(self, ids: I64) -> None:
        """These are done: their rows may go."""
        np.subtract.at(self.left, ids >> _BITS, 1)
        self.drop(ids)

    def drop(self, ids: I64) -> None:
        """Rows of the pages of these ids may go, of which ``left`` was counted down."""
        self._drop(ids >> _BITS)

    def forget(self, oldest: int) -> None:
        """Rows below ``oldest`` may go once they are done."""
        before = self.oldest >> _BITS
        self.oldest = max(self.oldest, min(oldest, self.count))
        if before < self.oldest >> _BITS:
            self._drop(np.arange(before, self.oldest >> _BITS))

    def _drop(self, pages: I64) -> None:
        """Let go of those of these pages that may go."""
        for page in set(pages[self.left[pages] == 0].tolist()):
            if page < self.oldest >> _BITS and self.place[page] != _GONE:
                self._unused.append(int(self.place[page]))
                self.place[page] = _GONE
