"""Which experts tokens go to: nobody knows before training, so it is an argument, ``--routing``.

``even`` (each expert as many), ``zipf:A`` (the k-th most popular in proportion to k ** -A, expert 0 first) or
a file of counts, one an expert, a line a layer (lines are gone through in turn). A router's ``topk`` then
gives experts that are known, and what follows (counts, offsets, sizes of exchanges) is computed from them.
Words and files: :mod:`cosim.profiler.distributions`.
Every rank routes as this one does. That it was so is said where sizes, places or products depend on it: a
``topk`` whose places are only compared, as an accuracy's are, is no router's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from cosim.profiler.distributions import is_file, read_counts, shown
from cosim.profiler.inside import lines

MOST_EXPERTS = 1024
_MARK = "_cosim_routed"
"""Attribute of values that follow from a routing: what to say of it."""


class TokenRouting:
    """Shares of the experts, and tokens assigned by them; ``assume(text)`` notes what was taken."""

    def __init__(self, said: str, assume: Callable[[str], None]) -> None:
        self.said, self.assume = said, assume
        rows = read_counts(said) if is_file(said) else []
        self._rows = cycle(rows) if rows else None
        self.chosen = 0
        """How often a router's choice was made."""

    def counts(self, slots: int, experts: int, most: int | None = None) -> list[int]:
        """How many of ``slots`` each expert gets, none more than ``most``; they add up."""
        if self._rows is not None:
            row = next(self._rows)
            shares = [float(row[k % len(row)]) for k in range(experts)]
        elif self.said.startswith("zipf:"):
            exponent = float(self.said.partition(":")[2])
            shares = [(k + 1) ** -exponent for k in range(experts)]
        else:
            shares = [1.0] * experts
        return divided(slots, shares, slots if most is None else most)

    def counted(self, slots: int, experts: int) -> list[int]:
        """The same, said."""
        self.assume(self._text(slots, experts))
        return self.counts(slots, experts)

    def _text(self, slots: int, experts: int) -> str:
        how = "evenly" if self.said == "even" else f"by {shown(self.said)}"
        return f"tokens are routed {how}: {slots} over {experts} experts"

    def used(self, values: Iterable[Any]) -> None:
        """Say it of those values that follow from a routing."""
        for each in values:
            said = getattr(each, _MARK, None)
            if said is not None:
                self.assume(said)

    def read(self, values: Any, found: Any) -> None:
        """The script reads ``found``: whole numbers become sizes; others, a metric's, are only made up."""
        if not values.is_floating_point():
            self.used([values])
        elif hasattr(values, _MARK):
            self.assume(f"{lines.current()}: the value of a tensor isn't known; it reads as {found}")

    def experts(self, tokens: int, each: int, experts: int) -> torch.Tensor:
        """The experts of each token, (tokens, each), different ones; int64."""
        counts = self.counts(tokens * each, experts, tokens)
        with no_dispatch():
            row = torch.repeat_interleave(torch.arange(experts), torch.tensor(counts))
            # Each expert's tokens are in a row and at most `tokens`: columns of this have different ones.
            return row.reshape(each, tokens).t().contiguous()

    def choose(self, func: Any, args: Any, out: Any) -> torch.Tensor | None:
        """Indices for a ``topk`` that looks like a router's: few of up to 1,024, for each of many rows."""
        if func._opname != "topk" or len(args) < 2:
            return None
        scores, each = args[0], int(args[1])
        experts = scores.shape[-1] if scores.dim() else 0
        tokens = scores.numel() // experts if experts else 0
        if not (1 <= each < experts <= MOST_EXPERTS and tokens > 1 and out[1].shape[-1] == each):
            return None
        self.chosen += 1
        chosen = self.experts(tokens, each, experts)
        with no_dispatch():
            made = chosen.reshape(tuple(out[1].shape))
        setattr(made, _MARK, self._text(tokens * each, experts))
        return made


def is_routed(values: Any) -> bool:
    """Whether values follow from a routing."""
    return hasattr(values, _MARK)


def follows(values: Any, known: Iterable[Any]) -> None:
    """Mark values that were computed from others, some of which may follow from a routing."""
    said = next((text for text in (getattr(each, _MARK, None) for each in known) if text), None)
    if said is not None and isinstance(values, torch.Tensor):
        setattr(values, _MARK, said)


def divided(total: int, shares: list[float], most: int) -> list[int]:
    """Whole numbers in proportion to shares, each at most ``most``, that add up to ``total``."""
    left, open_to = total, list(range(len(shares)))
    found = [0] * len(shares)
    while open_to:
        whole = sum(shares[k] for k in open_to) or 1.0
        full = [k for k in open_to if left * shares[k] / whole >= most]
        if not full:
            break
        for k in full:
            found[k] = most
            left -= most
        open_to = [k for k in open_to if k not in full]
    whole = sum(shares[k] for k in open_to)
    exact = {k: left * shares[k] / whole if whole else left / len(open_to) for k in open_to}
    for k in open_to:
        found[k] = int(exact[k])
    rest = total - sum(found)
    for k in sorted(open_to, key=lambda k: (int(exact[k]) - exact[k], k))[:rest]:
        found[k] += 1
    return found
