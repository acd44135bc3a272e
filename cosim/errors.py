"""One tree of errors::

    CosimError
    ├── InputError            a user's mistake; says file, line, value and what would be right
    │   ├── ScenarioError     a scenario file or a --set
    │   ├── TopologyError     a topology that can't be built or routed
    │   ├── WorkloadError     a workload or trace that can't be read or doesn't fit
    │   └── AlgorithmError    a collective algorithm that is wrong or would deadlock
    ├── SimulationError       the run can't go on, or can't be right
    │   ├── StallError        nothing can happen any more; lists who waits for whom
    │   ├── MismatchError     ranks disagree on what they do together
    │   └── UnreachableError  no path between two that must talk
    └── NetworkError          a network simulator broke the seam's rules, or was misused
        └── CausalityError    a flow in the past, time that goes back

Users see the message of any :class:`CosimError` without a traceback; anything else is a defect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """Where an input says it: file, 1-based line, key path."""

    file: str
    line: int | None = None
    key: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return place if self.key is None else f"{place}: {self.key}"


class CosimError(Exception):
    """Base of every error that cosim raises on purpose."""


class InputError(CosimError):
    """A user's mistake. ``location`` says where, ``hint`` says what would be right."""

    def __init__(self, message: str, *, location: Location | None = None, hint: str | None = None) -> None:
        self.message = message
        self.location = location
        self.hint = hint
        text = message if location is None else f"{location}: {message}"
        super().__init__(text if hint is None else f"{text}\n  {hint}")


class ScenarioError(InputError):
    """A scenario file or a ``--set`` that can't be used."""


class TopologyError(InputError):
    """A topology that can't be built or routed."""


class WorkloadError(InputError):
    """A workload or trace that can't be read, or doesn't fit the ranks it is given."""


class AlgorithmError(InputError):
    """A collective algorithm that is wrong or would deadlock; names rank, chunk and step."""


class SimulationError(CosimError):
    """The run can't go on, or can't be right."""


class StallError(SimulationError):
    """Nothing can happen any more, but work is left. ``waits`` has a line for each who waits."""

    def __init__(self, message: str, waits: Sequence[str] = ()) -> None:
        self.waits = tuple(waits)
        shown = [f"  {wait}" for wait in self.waits[:40]]
        if len(self.waits) > 40:
            shown.append(f"  ... and {len(self.waits) - 40} more")
        super().__init__("\n".join([message, *shown]))


class MismatchError(SimulationError):
    """Ranks disagree on what they do together: kind, size or group."""


class UnreachableError(SimulationError):
    """No path between two endpoints that must talk."""


class NetworkError(CosimError):
    """A network simulator broke the seam's rules, or was misused."""


class CausalityError(NetworkError):
    """A flow in the past, or time that goes back."""
