"""One tree of errors::

    CosimError
    ├── InputError            a user's mistake; says file, line, value and what would be right
    │   ├── ScenarioError     a scenario file or a --set
    │   ├── TopologyError     a topology that can't be built or routed
    │   ├── WorkloadError     a workload or trace that can't be read or doesn't fit
    │   │   └── InfeasibleError   a job that can't be on such GPUs: a sweep says so and goes on
    │   └── AlgorithmError    a collective algorithm that is wrong or would deadlock
    ├── RefutedError          a collective algorithm that was to be proved, and is wrong
    ├── SimulationError       the run can't go on, or can't be right
    │   ├── StallError        nothing can happen any more; lists who waits for whom
    │   ├── MismatchError     ranks disagree on what they do together
    │   └── UnreachableError  no path between two that must talk
    └── NetworkError          a network simulator broke the seam's rules, or was misused
        ├── CausalityError    a flow in the past, time that goes back
        └── RemoteError       a simulator elsewhere, behind gRPC
            ├── LaunchError       it can't be started or reached
            ├── VersionError      it speaks another version of the protocol
            ├── FeatureError      it can't do what is asked
            ├── RefusedError      it answered with an error of its own; says which
            ├── OverloadError     more is asked of it than it takes
            ├── ProtocolError     it lies: time that goes back, unknown flows, a wrong digest
            ├── DeadlineError     it takes too long
            ├── ServerDiedError   it died, or the way to it broke
            └── DivergenceError   after a restart, it or the run does something else than before

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
        return ": ".join(part for part in (place, self.key) if part)  # of what Python made there is no file


class CosimError(Exception):
    """Base of every error that cosim raises on purpose.

    Examples
    --------
    >>> import cosim
    >>> try:
    ...     cosim.loads("network: fair_share")
    ... except cosim.InputError as error:
    ...     print(error.location, error.message)
    scenario:1: topology is missing
    """


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


class InfeasibleError(WorkloadError):
    """A job that can't be on the GPUs that it is given, as it needs more memory: of a sweep, one choice that
    is out, where any other mistake ends it.

    Examples
    --------
    >>> import cosim
    >>> cut = {"tp": 2, "pp": 2, "dp": 16}
    >>> try:
    ...     cosim.run("scenarios/llama3-70b.yaml", set={"jobs[0].workload.parallel": cut})
    ... except cosim.InfeasibleError as error:
    ...     print(error.message[:54].rstrip())
    Llama 3 70B does not fit on H100-SXM5: it has 76 GiB,
    """


class AlgorithmError(InputError):
    """A collective algorithm that is wrong or would deadlock; names rank, chunk and step."""


class SchedulerError(InputError):
    """A scheduler that decides what can't be done."""


class RefutedError(CosimError):
    """A collective algorithm that was to be proved and is wrong; the prover's own error, which says where."""


class SimulationError(CosimError):
    """The run can't go on, or can't be right."""


class StallError(SimulationError):
    """Nothing can happen any more, but work is left. ``waits`` has a line for each who waits."""

    def __init__(self, message: str, waits: Sequence[str] = ()) -> None:
        self.message = message
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


class RemoteError(NetworkError):
    """A network simulator elsewhere, behind gRPC. ``server_log`` is the end of what it wrote to stderr."""

    def __init__(self, message: str, *, server_log: str = "") -> None:
        self.message = message
        self.server_log = server_log
        shown = "".join(f"\n  | {line}" for line in server_log.splitlines())
        super().__init__(f"{message}\n  the server's last words:{shown}" if shown else message)


class LaunchError(RemoteError):
    """A simulator that can't be started or reached."""


class VersionError(RemoteError):
    """A simulator that speaks another version of the protocol."""


class FeatureError(RemoteError):
    """A simulator that can't do what is asked; nothing is downgraded silently."""


class RefusedError(RemoteError):
    """A simulator's own error. ``reason`` is that of the protocol: CAUSALITY, INVALID_FLOWS, SIMULATOR ..."""

    def __init__(self, message: str, *, reason: str = "", server_log: str = "") -> None:
        self.reason = reason
        super().__init__(f"{message} [{reason}]" if reason else message, server_log=server_log)


class OverloadError(RemoteError):
    """More is asked of a simulator than it takes: flows, sessions, message size."""


class ProtocolError(RemoteError):
    """A simulator that breaks the seam's rules: time that goes back, unknown flows, a wrong digest."""


class DeadlineError(RemoteError):
    """A simulator that does not answer in time."""


class ServerDiedError(RemoteError):
    """A simulator that died, or the way to it broke, and that could not be brought back."""


class DivergenceError(RemoteError):
    """A second time, the same input led elsewhere: a simulator or a run that is not deterministic."""


def install_extra(name: str) -> str:
    """Return the advice that installs cosim's extra ``name``: the package is on no index."""
    return f"pip install '.[{name}]', in cosim's checkout"
