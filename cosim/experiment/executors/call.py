"""A call that can be sent anywhere, and what it gives."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from cosim.experiment.executors.worker import Setup, current_setup, worker


class Limits(NamedTuple):
    """Limits of a call: seconds, and how they were said; bytes. None: none."""

    timeout_s: float | None = None
    timeout: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True)
class RunResult:
    """What a call gave.

    Attributes
    ----------
    value
        What the function returned.
    failed
        Why there is no value; empty where there is one.
    is_lost
        Another try may do better: its process was killed, its machine went away.
    error
        What the function raised.
    """

    value: Any = None
    failed: str = ""
    is_lost: bool = False
    error: Exception | None = None

    @classmethod
    def lost_to(cls, why: str) -> RunResult:
        """That of a call that was lost."""
        return cls(failed=why, is_lost=True)


class RunCall:
    """A function and its argument. Called, it is run in a process kept for the thread that calls it."""

    def __init__(self, function: Callable[[Any], Any], argument: Any, limits: Limits) -> None:
        self._function, self._argument = function, argument
        self.limits = limits

    def here(self) -> RunResult:
        """Run it in this process, without limits. What it raises goes through."""
        return RunResult(self._function(self._argument))

    def __call__(self) -> RunResult:
        """Run it in a process beside this one, within its limits; what it raises is in the result."""
        return _call(pickle.dumps((self._function, self._argument)), current_setup(), self.limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Sent, (pickle.dumps((self._function, self._argument)), current_setup(), self.limits)


class _Sent(RunCall):
    """The same where it was sent to: what it holds is unpacked in its own process alone."""

    def __init__(self, packed: bytes, setup: Setup, limits: Limits) -> None:
        self._packed, self._setup = packed, setup
        self.limits = limits

    def here(self) -> RunResult:
        function, argument = pickle.loads(self._packed)
        return RunResult(function(argument))

    def __call__(self) -> RunResult:
        return _call(self._packed, self._setup, self.limits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Sent, (self._packed, self._setup, self.limits)


def _call(packed: bytes, setup: Setup, limits: Limits) -> RunResult:
    answer = worker(setup._replace(memory_bytes=limits.memory_bytes)).ask(packed, limits.timeout_s)
    match answer.kind:
        case "value":
            return RunResult(answer.value)
        case "raised":
            return RunResult(error=answer.value)
        case "memory":
            return RunResult(failed="needs more memory than it may have")
        case "timeout":
            return RunResult(failed=f"takes longer than the {limits.timeout} it may")
        case _:
            return RunResult.lost_to(f"its process {answer.value}")
