"""Inputs tried, and what became of them."""

from __future__ import annotations

import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cosim.errors import CosimError

SLOW_S = 20.0
"""CPU seconds: longer than this, for the small inputs that there are here, is a hang."""
_SHOWN = 600


@dataclass(frozen=True)
class Target:
    """One kind of input: how it is made, and what is tried with it."""

    name: str
    inputs: st.SearchStrategy[Any]
    attempt: Callable[[Any], object]


@dataclass
class Tally:
    """Counts by target; ``failures`` has a text for each input that ended otherwise."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)

    def judge(self, target: Target, value: Any) -> None:
        """Try one input."""
        before = signal.signal(signal.SIGPROF, _hangs)
        signal.setitimer(signal.ITIMER_PROF, SLOW_S, 1.0)  # again: a callback may drop it
        began = time.perf_counter()
        try:
            target.attempt(value)
            self.read[target.name] += 1
        except CosimError as error:
            if wrong := not_a_refusal(str(error)):
                self._fail(target, value, f"{wrong}: {error}")
            else:
                self.refused[target.name] += 1
        except Exception:  # what is looked for
            self._fail(target, value, traceback.format_exc(limit=-6))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
            self.seconds[target.name] += time.perf_counter() - began  # type: ignore[assignment]

    def _fail(self, target: Target, value: Any, how: str) -> None:
        self.failed[target.name] += 1
        shown = repr(value)
        shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ..."
        self.failures.append(f"{target.name}: {shown}\n{how}")

    def add(self, other: Tally) -> None:
        """What another one counted."""
        for mine, theirs in (
            (self.read, other.read),
            (self.refused, other.refused),
            (self.failed, other.failed),
            (self.seconds, other.seconds),
        ):
            mine.update(theirs)
        self.failures += other.failures

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("input", "tried", "read", "refused", "otherwise", "seconds")]
        names = sorted({*self.read, *self.refused, *self.failed})
        for name in names:
            counts = self.read[name], self.refused[name], self.failed[name]
            rows.append((name, *(f"{n:,}" for n in (sum(counts), *counts)), f"{self.seconds[name]:.0f}"))
        counts = self.read.total(), self.refused.total(), self.failed.total()
        total = (f"{n:,}" for n in (sum(counts), *counts))
        rows.append(("all", *total, f"{self.seconds.total():.0f}"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(w) if n else cell.ljust(w)
                for n, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


def not_a_refusal(text: str) -> str:
    """What is wrong with an error's text; empty: nothing."""
    if not text.strip():
        return "an error without a word"
    if text.startswith(("None", ": ")):
        return "an error without a place"
    return "an address of a manual" if "errors.pydantic.dev" in text else ""


def _hangs(number: int, frame: object) -> None:
    raise TimeoutError("longer than it may take")


def run(targets: Sequence[Target], examples: int, number: int, *, seconds: float | None = None) -> Tally:
    """Try ``examples`` inputs of each target, those of seed ``number``; fewer when ``seconds`` are over."""
    tally = Tally()
    for target in targets:
        until = None if seconds is None else time.perf_counter() + seconds / len(targets)
        _run_one(tally, target, examples, number, until)
    return tally


def _run_one(tally: Tally, target: Target, examples: int, number: int, until: float | None) -> None:
    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(target.inputs)
    def one(value: Any) -> None:
        if until is None or time.perf_counter() < until:
            tally.judge(target, value)

    one()
