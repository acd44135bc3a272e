"""The registry of checks, and what a check may use: sessions of the network or server under test."""

from __future__ import annotations

import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Generic, Literal, TypeVar

import numpy as np

from cosim.errors import CausalityError, CosimError, FeatureError, OverloadError, RefusedError, VersionError
from cosim.network.flows import I64
from cosim.network.simulator import Capabilities, NetworkStatistics, QueueSample, RateSample
from cosim.protocol.flat_flows import FlatFlows
from cosim.testing.conformance.report import (
    CheckFailed,
    CheckSkipped,
    Report,
    Result,
    expect,
)
from cosim.topology.graph import Topology
from cosim.units import NEVER

Starts = tuple[I64, I64, I64]
"""Columns of flow ids, starts and causes."""


@dataclass(eq=False)
class Answer:
    """What one advance came to: the grant, and completions as columns; ``digest`` is that of all so far."""

    granted_ps: int
    ids: I64
    start_ps: I64
    time_ps: I64
    digest: tuple[int, int]

    def times(self) -> dict[int, int]:
        """Completion time of each id."""
        return dict(zip(self.ids.tolist(), self.time_ps.tolist(), strict=True))


class Probe(ABC):
    """One session. It believes all that it is told, so that each check looks at its own rule alone.

    Flows are flat, with the ids 0, 1, 2 ... in the order given. ``answers`` are those of every advance.
    """

    def __init__(self) -> None:
        self.next_id = 0
        self.answers: list[Answer] = []

    @abstractmethod
    def open(self) -> object:
        """Open the session."""

    @abstractmethod
    def advance(
        self, flows: FlatFlows | None = None, horizon_ps: int = NEVER, *, starts: Starts | None = None
    ) -> Answer:
        """Give flows and starts, run to the horizon at most; the answer."""

    @abstractmethod
    def peek(self) -> int | None:
        """The time of the next completion, without moving."""

    @abstractmethod
    def statistics(self) -> NetworkStatistics:
        """Counters since the session was opened."""

    @abstractmethod
    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """What stands at links at the grant, which is ``now_ps``."""

    @abstractmethod
    def rates(self) -> RateSample:
        """What connections send at the grant."""

    @abstractmethod
    def has_work(self) -> bool:
        """Whether anything will still happen."""

    @abstractmethod
    def close(self) -> None:
        """End the session."""

    @abstractmethod
    def break_off(self) -> None:
        """Leave the session without ending it, as a crash of the client does."""

    def finish(self, most: int = 10_000) -> dict[int, int]:
        """Advance until every flow given has completed; completion times by id.

        Raises
        ------
        CheckFailed
            Some never do, in ``most`` advances.
        """
        for _ in range(most):
            times = self.times()
            if all(one in times for one in range(self.next_id)):
                return times
            self.advance()
        missing = [one for one in range(self.next_id) if one not in self.times()]
        raise CheckFailed(f"{most} advances did not complete flows {missing[:5]}")

    def times(self) -> dict[int, int]:
        """Completion times so far, of flows that were given."""
        return {
            one: when for answer in self.answers for one, when in answer.times().items() if one < self.next_id
        }


P_co = TypeVar("P_co", bound=Probe, covariant=True)


class Kit(ABC, Generic[P_co]):
    """What is under test. ``capabilities`` are what it claims; sessions are on ``topology``."""

    capabilities: Capabilities
    topology: Topology

    def links(self, src: int, dst: int) -> list[int]:
        """The links of the path between two endpoints."""
        _, path = self.topology.paths(*(np.array([one], np.int32) for one in (src, dst, 0)))
        return [int(link) for link in path]

    @abstractmethod
    def new_probe(self) -> P_co:
        """A session that is not open yet."""

    @abstractmethod
    def has(self, feature: str) -> bool:
        """Whether it claims a feature, by the protocol's name for it: ``dependent_flows``."""

    @contextmanager
    def probe(self, *, opened: bool = True) -> Iterator[P_co]:
        """A session, open unless said otherwise; closed at the end."""
        probe = self.new_probe()
        try:
            if opened:
                probe.open()
            yield probe
        finally:
            probe.close()

    def needs(self, *features: str) -> None:
        """Skip the check where one of these isn't claimed.

        Raises
        ------
        CheckSkipped
            Names it.
        """
        for feature in features:
            if not self.has(feature):
                raise CheckSkipped(f"{feature} is not claimed")

    def needs_determinism(self) -> None:
        """Skip the check where the same input may lead elsewhere.

        Raises
        ------
        CheckSkipped
            It is said not to be deterministic.
        """
        if not self.capabilities.deterministic:
            raise CheckSkipped("it says that it is not deterministic")

    def crash(self, probe: Probe) -> None:
        """End the session's other side as a crash does, where that can be done; at least break it off."""
        probe.break_off()


Kind = Literal["network", "server"]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule with a name, of networks in this process, of servers, or of both."""

    name: str
    about: str
    of: tuple[Kind, ...]
    function: Callable[..., None] = field(compare=False)


_CHECKS: list[Check] = []


def check(
    name: str, about: str, of: Sequence[Kind] = ("network", "server")
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a check under its name; ``about`` is the rule."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        _CHECKS.append(Check(name, about, tuple(of), function))
        return function

    return register


def checks(kind: Kind) -> tuple[Check, ...]:
    """Every check of a kind, in the order in which they run."""
    for module in (
        "server_rules",
        "refusals",
        "link_rules",
        "network_rules",
        "rules",
        "samples",
        "times",
        "sameness",
    ):
        import_module(f"cosim.testing.conformance.{module}")  # registers its checks
    return tuple(check for check in _CHECKS if kind in check.of)


def check_names(kind: Kind) -> tuple[str, ...]:
    """The names of :func:`checks`."""
    return tuple(check.name for check in checks(kind))


def run_checks(
    kit: Kit[Probe],
    kind: Kind,
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    told: Callable[[Result], None] | None = None,
) -> Report:
    """Run the checks of a kind; ``told`` is called after each.

    Raises
    ------
    ValueError
        There is no check of that name.
    """
    known = check_names(kind)
    for name in (*only, *skip):
        if name not in known:
            raise ValueError(f"there is no check {name!r} of a {kind}; there are: {', '.join(known)}")
    results = []
    for one in checks(kind):
        if one.name not in (only or known) or one.name in skip:
            continue
        began = time.perf_counter()
        verdict, detail = _verdict(kit, one)
        results.append(Result(one.name, one.about, verdict, detail, time.perf_counter() - began))
        if told is not None:
            told(results[-1])
    return Report(kit.capabilities.name, tuple(results))


def _verdict(kit: Kit[Probe], one: Check) -> tuple[Literal["passed", "failed", "skipped"], str]:
    try:
        one.function(kit)
    except CheckSkipped as why:
        return "skipped", str(why)
    except CheckFailed as why:
        return "failed", str(why)
    except Exception as error:  # the network under test is somebody else's: it may raise anything
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = "" if isinstance(error, CosimError) else f" ({where.filename}:{where.lineno})"
        return "failed", f"{type(error).__name__}: {error}{place}"
    return "passed", ""


_REASONS: dict[type[CosimError], str] = {
    CausalityError: "CAUSALITY",
    VersionError: "VERSION",
    FeatureError: "FEATURE_MISSING",
    OverloadError: "OVERLOADED",
}


@contextmanager
def refused(reason: str, what: str) -> Iterator[None]:
    """What is done within must be refused for that reason of the protocol.

    Raises
    ------
    CheckFailed
        It is taken, or refused for another reason.
    """
    try:
        yield
    except CosimError as error:
        got = error.reason if isinstance(error, RefusedError) else _REASONS.get(type(error), "")
        expect(got == reason, f"{what} must be refused as {reason}; got {type(error).__name__}: {error}")
    else:
        expect(False, f"{what} must be refused as {reason}; it was taken")
