"""Runs the checks against an address, a command that serves, or a network of this process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cosim.errors import CosimError
from cosim.network.simulator import NetworkSimulator
from cosim.protocol.launcher import Launched
from cosim.protocol.server import Server
from cosim.protocol.session import Served
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.protocol.wire import Wire
from cosim.testing.conformance.probe import Probe
from cosim.testing.conformance.worlds import star


class Failed(Exception):  # noqa: N818 - a check's verdict, caught here
    """A check failed; the text says what was seen and what would be right."""


class NotApplicable(Exception):  # noqa: N818
    """A check that this server need not pass: it doesn't claim the feature."""


@dataclass(frozen=True, slots=True)
class Result:
    """One check: ``verdict`` is passed, failed or skipped."""

    name: str
    about: str
    verdict: str
    detail: str = ""
    took_s: float = 0.0


@dataclass(frozen=True)
class Report:
    """What came of all checks."""

    simulator: str
    results: tuple[Result, ...]

    @property
    def passed(self) -> bool:
        """No check failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of checks that failed."""
        return tuple(result.name for result in self.results if result.verdict == "failed")

    def __str__(self) -> str:
        width = max((len(result.name) for result in self.results), default=0)
        lines = [f"conformance of {self.simulator}"]
        for result in self.results:
            text = result.detail if result.verdict != "passed" else result.about
            lines.append(f"  {result.verdict:<7} {result.name:<{width}}  {text}")
        count = len(self.results) - len(self.failed)
        skipped = sum(result.verdict == "skipped" for result in self.results)
        lines.append(f"{count - skipped} passed, {len(self.failed)} failed, {skipped} skipped")
        return "\n".join(lines)


Check = Callable[["Kit"], None]
_CHECKS: dict[str, tuple[str, Check]] = {}


def check(name: str, about: str) -> Callable[[Check], Check]:
    """Register a check under its name; ``about`` says the rule."""

    def register(function: Check) -> Check:
        _CHECKS[name] = (about, function)
        return function

    return register


@dataclass(eq=False)
class Kit:
    """What a check may use. ``deadline_s`` bounds every answer."""

    target: str | tuple[str, ...] | Callable[[], NetworkSimulator]
    deadline_s: float = 20.0
    described: pb.DescribeResponse = field(default_factory=pb.DescribeResponse)
    _process: Launched | None = None
    _server: Server | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def can_kill(self) -> bool:
        """Whether the server was started here, as a process."""
        return self._process is not None

    def address(self) -> str:
        """Where the server is; starts it where that is the kit's affair."""
        if isinstance(self.target, str):
            return self.target
        if isinstance(self.target, tuple):
            if self._process is None or not self._process.is_alive:
                self._process = Launched(self.target, timeout_s=max(30.0, self.deadline_s))
            return self._process.address
        if self._server is None:
            self._folder = tempfile.TemporaryDirectory(prefix="cosim-")
            self._server = Server(Served(self.target), f"unix:{Path(self._folder.name) / 'socket'}").start()
        return self._server.address

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        assert self._process is not None
        self._process.kill()

    def wire(self) -> Wire:
        """A new connection."""
        return Wire(self.address(), deadline_s=self.deadline_s)

    @contextmanager
    def probe(self, endpoints: int = 8, *, opened: bool = True) -> Iterator[Probe]:
        """A session on the star, open unless said otherwise."""
        probe = Probe(self.wire(), self.described, star(endpoints))
        try:
            if opened:
                probe.open()
            yield probe
        finally:
            probe.close()

    def has(self, *features: pb.Feature) -> bool:
        """Whether the server claims these."""
        return all(feature in self.described.features for feature in features)

    def needs(self, *features: pb.Feature) -> None:
        """Skip the check where the server doesn't claim these."""
        for feature in features:
            if feature not in self.described.features:
                name = pb.Feature.Name(feature).removeprefix("FEATURE_").lower()
                raise NotApplicable(f"the server does not claim {name}")

    def close(self) -> None:
        """End what was started."""
        if self._process is not None:
            self._process.stop()
        if self._server is not None:
            self._server.stop()
        if self._folder is not None:
            self._folder.cleanup()


def expect(condition: bool, text: str) -> None:
    """Fail the check unless ``condition``."""
    if not condition:
        raise Failed(text)


def check_network_simulator(
    target: str | Sequence[str] | Callable[[], NetworkSimulator],
    *,
    only: Sequence[str] = (),
    deadline_s: float = 20.0,
    told: Callable[[Result], None] | None = None,
) -> Report:
    """Check a server, or a network of this process behind cosim's own server.

    Parameters
    ----------
    target
        The address of a server; a command that serves (it can be killed then); or a function that makes a
        network.
    only
        Names of checks to run; all, where empty.
    deadline_s
        How long any answer may take.
    told
        Called after each check.

    Raises
    ------
    LaunchError
        No server there, or the command doesn't serve.
    """
    from cosim.testing.conformance import rules, sameness, times

    del rules, sameness, times  # importing them registers their checks
    kit = Kit(target if isinstance(target, str) or callable(target) else tuple(target), deadline_s)
    results = []
    try:
        wire = kit.wire()
        kit.described = wire.describe()
        wire.close()
        for name, (about, function) in _CHECKS.items():
            if only and name not in only:
                continue
            began = time.perf_counter()
            verdict, detail = _run(kit, function)
            results.append(Result(name, about, verdict, detail, time.perf_counter() - began))
            if told is not None:
                told(results[-1])
    finally:
        kit.close()
    return Report(kit.described.simulator, tuple(results))


def check_names() -> tuple[str, ...]:
    """Every check's name, in the order in which they run."""
    from cosim.testing.conformance import rules, sameness, times

    del rules, sameness, times
    return tuple(_CHECKS)


def _run(kit: Kit, function: Check) -> tuple[str, str]:
    try:
        function(kit)
    except NotApplicable as why:
        return "skipped", str(why)
    except Failed as why:
        return "failed", str(why)
    except CosimError as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""
