"""The seam: what the engine asks of a network, built in or behind gRPC.

**Horizon.** The caller promises to start no flow before ``horizon_ps`` except in reaction to a completion
of this network. The network runs to ``min(horizon, min over completions i it reports of (t_i +
reaction_i))``, so with zero reactions it stops at its first completion: zero lookahead is exact. It
reports every completion in (previous grant, grant], each with its own time. It may grant less than it
could (a full buffer); the caller just asks again. A flow given later starts at or after the grant;
anything earlier is a :class:`~cosim.errors.CausalityError`.

**One instant.** A grant at t is closed for completions and open for starts: every completion due at t is
reported, and no flow has started at t yet, whether given or released. Starts at t happen in the next
``advance`` whose horizon is later. An instant is rounds of (all completions at t, then all starts at t) until
neither is left. What a model does depends on the set of flows, never on where calls were cut: flows that
start in one round are taken in the order (cause, key), and behind all that started in an earlier round, on
their channel, too.

**Marks.** A flow from a participant to itself is a mark: it takes no time and no links, whatever its size.
Networks with ``computations`` are given these as marks, on channel :data:`~cosim.network.flows.COMPUTATION`,
whose size is what they take on an idle GPU, in picoseconds; they complete when they have ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cosim.errors import CausalityError, NetworkError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import F64, I32, I64, Completions, FlowBatch
from cosim.topology.graph import Topology


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a network can do.

    ``dependent_flows``: releases flows by itself. ``peek``: knows its next completion without moving.
    ``deterministic``: same input, same completions. ``quantum_ps``: completions are multiples of it.
    ``symmetric``: flows meet on shared links only, and nothing goes by who was first at an instant; so where
    everything looks the same from two places, everything happens at the same times there.
    ``link_changes``: links fail, slow down and come back as the topology says.
    ``live_changes``: takes changes of links that were not known before, too, by ``change``.
    ``live_control``: takes other parameters of its congestion control, by ``tune``.
    ``switch_ends``: takes flows that begin or end at switches.
    ``computations``: has computations and messages share GPUs.
    ``queues``, ``rates``: says at any instant how long queues of links are, how fast connections send.
    """

    name: str
    dependent_flows: bool = True
    peek: bool = False
    deterministic: bool = True
    quantum_ps: int = 1
    symmetric: bool = False
    link_changes: bool = False
    queues: bool = False
    rates: bool = False
    live_changes: bool = False
    live_control: bool = False
    switch_ends: bool = False
    computations: bool = False


class Advance(NamedTuple):
    """How far the network ran, and what completed on the way."""

    granted_ps: int
    completions: Completions


@dataclass(frozen=True)
class BalancingUse:
    """What a load balancer did: how often a connection chose, and how often that changed a path it had;
    ``paths`` that a pair of endpoints had to choose from, on average, and how many of them it ``used``.
    """

    balancer: str
    choices: int
    changes: int
    paths: float
    used: float


@dataclass(frozen=True, eq=False)
class NetworkStatistics:
    """Per directed link, since ``open``: bytes sent, time spent sending, and the latter over time.

    ``busy_ps[b, l]`` is the time link l was busy in [b, b + 1) * ``bin_ps``; a fluid model counts the
    fraction of the rate in use. Bins double as time goes on, so their number stays bounded.
    """

    link_bytes: I64
    bin_ps: int
    busy_ps: I64
    flows_started: int
    flows_completed: int
    events: int
    extra: Mapping[str, F64] = field(default_factory=dict)
    balancing: BalancingUse | None = None

    @property
    def link_busy_ps(self) -> I64:
        """Time each link was busy, over all bins."""
        return np.asarray(self.busy_ps.sum(axis=0), np.int64)


class QueueSample(NamedTuple):
    """Links at an instant, float64[links] each, all classes together: bytes queued; and since ``open`` bytes
    sent, packets marked and dropped, picoseconds paused.
    """

    queue_bytes: F64
    sent_bytes: F64
    marks: F64
    drops: F64
    pause_ps: F64


class RateSample(NamedTuple):
    """Connections that send at an instant: whose they are, bits per second, bytes of the window (NaN
    where they have none), and the part of the round before that was marked.
    """

    job: I32
    src: I32
    dst: I32
    rate_bps: F64
    window_bytes: F64
    marked: F64


class NetworkSimulator(ABC):
    """The seam. One object is one session: ``open`` once, ``close`` at the end."""

    @property
    def elsewhere(self) -> bool:
        """Whether it runs outside of this process, and keeps a log from which a run can go on: ``log_to``."""
        return False

    @abstractmethod
    def describe(self) -> Capabilities:
        """What this network can do; before or after ``open``."""

    @abstractmethod
    def open(self, topology: Topology, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Build the network. ``options`` are the model's own; an unknown one is a NetworkError."""

    @abstractmethod
    def advance(self, flows: FlowBatch, horizon_ps: int) -> Advance:
        """Take the batch, then run as the module's text says."""

    def peek(self) -> int | None:
        """Time of the next completion if nothing more is given, without moving; None if there is none.

        Raises
        ------
        NetworkError
            It is not among the capabilities.
        """
        raise NetworkError(f"{self.describe().name} does not peek")

    def queues(self, links: I64, now_ps: int) -> QueueSample:
        """What stands at links when the instant ``now_ps`` begins, which was granted; changes nothing.

        Raises
        ------
        NetworkError
            It is not among the capabilities.
        """
        del links, now_ps
        raise NetworkError(f"{self.describe().name} keeps no queues over time")

    def check_queues(self, topology: Topology, links: I64) -> None:
        """Refuse links whose queues it does not keep, where it keeps those of others; before ``open``.

        Raises
        ------
        ScenarioError
            Says which link, and who carries it.
        """
        del topology, links

    def rates(self) -> RateSample:
        """What connections send when the instant begins that was granted; changes nothing.

        Raises
        ------
        NetworkError
            It is not among the capabilities.
        """
        raise NetworkError(f"{self.describe().name} keeps no rates over time")

    def change(self, changes: Sequence[LinkChange | RouteChange]) -> None:
        """Have links, and what routes avoid, change, at or after the instant that was granted; by time.

        The topology that it was opened on has ``changes``, of which there may be none.

        Raises
        ------
        NetworkError
            It is not among the capabilities.
        """
        del changes
        raise NetworkError(f"{self.describe().name} has no links that change while it runs")

    def tune(self, values: Mapping[str, Any], now_ps: int) -> None:
        """Have the congestion control use other parameters, by name, from the instant on that was granted.

        Raises
        ------
        NetworkError
            It is not among the capabilities, or there is no such parameter or value.
        """
        del values, now_ps
        raise NetworkError(f"{self.describe().name} has no control whose parameters change while it runs")

    @property
    def takes_paths(self) -> bool:
        """Whether messages go by the topology's routing, channel by channel; of a network that is open."""
        return True

    def has_work(self) -> bool:
        """Whether anything will still happen that it was not told of; of networks with queues or rates."""
        return False

    @abstractmethod
    def statistics(self) -> NetworkStatistics:
        """Counters since ``open``."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything; may be called twice."""

    def parts(self) -> Sequence[NetworkSimulator]:
        """The networks that it is made of; itself, where it is one."""
        return (self,)

    def log_to(self, path: Path, *, resume: bool = False) -> None:
        """Keep what is injected in a file, or go on from one; for networks that run elsewhere.

        Raises
        ------
        NetworkError
            It runs here, and is as fast run again.
        """
        del path, resume
        raise NetworkError(f"{self.describe().name} keeps no log")


def granted_by(network: NetworkSimulator, answer: Advance, before: int, horizon: int) -> Advance:
    """An answer of a network that stood at ``before``, as it is.

    Raises
    ------
    CausalityError
        Its time went back or beyond what it was asked for, or a completion's time did.
    """
    granted, done = answer
    if granted < before or granted > horizon:
        raise CausalityError(
            f"{network.describe().name} granted {granted} ps; it may grant {before} to {horizon} ps"
        )
    if len(done):
        first, last = int(done.time_ps.min()), int(done.time_ps.max())
        if first < before or last > granted:
            wrong = first if first < before else last
            raise CausalityError(
                f"{network.describe().name} reports a completion at {wrong} ps; "
                f"it went from {before} to {granted} ps"
            )
    return answer
