"""Tokens of an answer are not known: when it ends and which drafts are accepted are arguments.

``--lengths`` says after how many tokens each sequence of a request ends, where the script looks for a token
that ends it; without it none ends before the script's own limit. ``--acceptance`` says how probable it is
that a drafted token is the one that the model would have chosen, given that those before it are (Leviathan et
al., "Fast inference from transformers via speculative decoding", 2023); without it none is. Every rank draws
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from cosim.profiler.distributions import ACCEPTANCE, LENGTHS, Distribution

_COMPARISONS = frozenset({"eq", "le", "lt"})


class ChosenTokens:
    """What is asked of tokens that a model has chosen; ``assume(text)`` notes what was taken.

    Attributes
    ----------
    lengths
        Of the request's sequences; None: none has ended before ``most``, the script's limit.
    """

    def __init__(self, lengths: str, acceptance: str, seed: int, assume: Callable[[str], None]) -> None:
        self._lengths = Distribution(lengths, LENGTHS, seed) if lengths else None
        self._rates = Distribution(acceptance, ACCEPTANCE, seed) if acceptance else None
        self._random = Random(f"drafts {seed}")
        self.assume = assume
        self.most = 0
        self.lengths: list[int] | None = None
        self._answering = False
        self._before: int | None = None
        self._drafted: int | None = None

    @contextmanager
    def answering(self) -> Iterator[None]:
        """A request is answered in here."""
        self._answering, self._before, self.lengths = True, None, None
        try:
            yield
        finally:
            self._answering, self._drafted = False, None
            if self._lengths is not None and self.lengths is None:
                self.assume("the script looks for no token that ends an answer: lengths change nothing")

    def step_begins(self, tokens: int) -> None:
        """The model is given so many tokens after the prompt, drafts among them."""
        self._before = tokens - (self._drafted or 0)

    def drafted(self, tokens: int) -> None:
        """So many tokens will be compared with the model's."""
        self._drafted = tokens

    def compared(self, func: Any, out: Any) -> torch.Tensor | None:
        """The truth of a comparison of tokens that nobody knows, if it is one."""
        if not self._answering or not isinstance(out, torch.Tensor) or out.dtype is not torch.bool:
            return None
        if func._opname == "isin":
            return self._ends(tuple(out.shape))
        drafted = self._drafted
        if drafted is not None and func._opname in _COMPARISONS and out.shape[-1:] == (drafted,):
            return self._accepted(tuple(out.shape), drafted)
        return None

    def _ends(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Which of a step's tokens (of each sequence, where there are several) end their sequence."""
        with no_dispatch():
            if self._lengths is None or self._before is None or not shape:
                return torch.zeros(shape, dtype=torch.bool)
            if self.lengths is None:
                self.lengths = [self._lengths.length(self.most) for _ in range(shape[0] if shape[1:] else 1)]
                self.assume(f"answers of {self._lengths.said} tokens, drawn: {_range(self.lengths)}")
            places = torch.arange(1, shape[-1] + 1) + self._before
            return (places >= torch.tensor(self.lengths)[:, None]).reshape(shape)

    def _accepted(self, shape: tuple[int, ...], drafted: int) -> torch.Tensor:
        """Drafts hold up to the first that doesn't."""
        count, self._drafted = 0, None
        if not drafted:
            pass  # a last step without a draft
        elif self._rates is None:
            self.assume("no drafted token is accepted: --acceptance says how many are")
        else:
            self.assume(f"a drafted token is accepted with a probability of {self._rates.said}")
            rate = self._rates.probability()
            while count < drafted and self._random.random() < rate:
                count += 1
        with no_dispatch():
            return (torch.arange(drafted) < count).expand(shape).clone()


def _range(lengths: list[int]) -> str:
    return f"{min(lengths)} to {max(lengths)}" if len(lengths) > 1 else str(lengths[0])
