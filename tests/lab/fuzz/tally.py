"""Inputs tried, and what became of them."""

from __future__ import annotations

import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from cosim.errors import CosimError

SLOW_S = 20.0
"""CPU seconds: longer than this, for the small inputs that there are here, is a hang."""
_SHOWN = 600
_ALIKE = 3
"""Finds that ended at one place are told so often; all are counted."""

Inputs = Callable[[int, int, Callable[[Any], bool]], None]
"""Given a seed and a number: gives so many inputs to a function, until that says False."""


def drawn(make: Callable[[Random], Any]) -> Inputs:
    """Inputs that ``make`` draws: hundreds of thousands a second."""

    def give(number: int, count: int, judge: Callable[[Any], bool]) -> None:
        draw = Random(number)
        for _ in range(count):
            if not judge(make(draw)):
                return

    return give


class _TimeIsOver(Exception):  # noqa: N818 - no error
    """Ends what hypothesis would go on with."""


def from_strategy(strategy: st.SearchStrategy[Any]) -> Inputs:
    """Inputs of a hypothesis strategy: a few hundred a second, fewer the more there were."""

    def give(number: int, count: int, judge: Callable[[Any], bool]) -> None:
        @seed(number)
        @settings(
            max_examples=min(count, 500),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(strategy)
        def one(value: Any) -> None:
            if not judge(value):
                raise _TimeIsOver

        with suppress(_TimeIsOver):
            one()

    return give


@dataclass(frozen=True)
class Target:
    """One kind of input: where they come from, and what is tried with each."""

    name: str
    inputs: Inputs
    attempt: Callable[[Any], object]


@dataclass
class Tally:
    """Counts by target; ``failures`` has a text for inputs that ended otherwise, a few of each place."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    microseconds: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def judge(self, target: Target, value: Any) -> None:
        """Try one input; to be called in :func:`watched`."""
        signal.setitimer(signal.ITIMER_PROF, SLOW_S, 1.0)  # again: a callback may drop it
        began = time.process_time_ns()
        try:
            target.attempt(value)
            self.read[target.name] += 1
        except CosimError as error:
            if wrong := not_a_refusal(str(error)):
                self._fail(target, value, f"{wrong}: {error}", wrong)
            else:
                self.refused[target.name] += 1
        except Exception as error:  # what is looked for
            last = traceback.extract_tb(error.__traceback__)[-1]
            self._fail(target, value, traceback.format_exc(limit=-6), f"{last.filename}:{last.lineno}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.microseconds[target.name] += (time.process_time_ns() - began) // 1000

    def _fail(self, target: Target, value: Any, how: str, place: str) -> None:
        self.failed[target.name] += 1
        self.places[place] += 1
        if self.places[place] <= _ALIKE:
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ..."
            self.failures.append(f"{target.name}: {shown}\n{how}")

    def add(self, other: Tally) -> None:
        """What another one counted."""
        for one in fields(self):
            mine = getattr(self, one.name)
            if isinstance(mine, Counter):
                mine.update(getattr(other, one.name))
        self.failures += other.failures

    def row(self, name: str, targets: Sequence[str]) -> tuple[str, ...]:
        """A line of the table: some targets together."""
        counts = [sum(one[target] for target in targets) for one in (self.read, self.refused, self.failed)]
        seconds = sum(self.microseconds[target] for target in targets) / 1e6
        rate = sum(counts) / seconds if seconds else 0.0
        return (name, *(f"{n:,}" for n in (sum(counts), *counts)), f"{seconds:.0f}", f"{rate:,.0f}")

    @property
    def targets(self) -> list[str]:
        """Names of what was tried."""
        return sorted({*self.read, *self.refused, *self.failed})


def table(tallies: Mapping[str, Tally]) -> str:
    """By kind and target: tried, read, refused, otherwise; CPU seconds of the inputs alone."""
    rows: list[tuple[str, ...]] = [("input", "tried", "read", "refused", "otherwise", "seconds", "a second")]
    whole = Tally()
    for kind, tally in tallies.items():
        whole.add(tally)
        rows.append(tally.row(kind, tally.targets))
        if len(tally.targets) > 1:
            rows += [tally.row(f"  {name}", [name]) for name in tally.targets]
    rows.append(whole.row("all", whole.targets))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if n else cell.ljust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))
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


@contextmanager
def watched() -> Iterator[None]:
    """An input that takes too long here is a TimeoutError."""

    def hangs(number: int, frame: object) -> None:
        if signal.getitimer(signal.ITIMER_PROF)[0] > 0:  # else it ended meanwhile
            raise TimeoutError("longer than it may take")

    before = signal.signal(signal.SIGPROF, hangs)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)


def cpu_s() -> float:
    """CPU seconds of this process and of those that it started, which have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def run(targets: Sequence[Target], examples: int, number: int, *, seconds: float | None = None) -> Tally:
    """Try so many inputs of each target, those of seed ``number``; fewer when ``seconds`` of CPU are over."""
    tally = Tally()
    with watched():
        for target in targets:
            until = None if seconds is None else cpu_s() + seconds / len(targets)

            def judge(value: Any, target: Target = target, until: float | None = until) -> bool:
                if until is not None and cpu_s() > until:
                    return False
                tally.judge(target, value)
                return True

            target.inputs(number, examples, judge)
    return tally
