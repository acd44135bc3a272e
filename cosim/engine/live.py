"""What processes need of a replay that they take part in: the kernel's, or the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from cosim.engine.directing import JobOrder
from cosim.engine.driven import AskedCollective
from cosim.engine.programs import Group, ReadyJob
from cosim.engine.records import JobInfo, Records
from cosim.engine.under_way import Waiting
from cosim.network.flows import I32, I64
from cosim.network.simulator import NetworkSimulator
from cosim.pattern.plan import Plan
from cosim.workload.operation import Operation, OpKind

Told = Callable[[Sequence[int], Iterable[int], Iterable[tuple[int, int]]], None]
"""Called with what ended together: tickets; jobs that are watched; ranks that came to what code carries, each
as a rendezvous and a position.
"""


class MetCollective(NamedTuple):
    """A collective of a group under way, as whoever came first has it."""

    operation: Operation
    plan: Plan
    job: int
    iteration: int
    group: Group


class RanksDriver(Protocol):
    """Issues operations on the ranks of driven jobs. ``whom`` is told when one has ended."""

    waiting: dict[int, Any]
    """By ticket: whoever is to be told first, maybe others."""

    def like(
        self,
        kind: OpKind,
        name: str,
        collective: str = "",
        ranks: tuple[int, ...] | None = None,
        root: int = 0,
        channel: int = 0,
        access: str = "",
    ) -> int:
        """The number of what operations are like."""

    def compute(self, job: int, ranks: I32, durations: I64, like: int) -> int:
        """Have ranks compute, each for its duration, from now on: the ticket."""

    def access(self, job: int, ranks: I32, size: int, duration_ps: int, like: int) -> int:
        """Have each rank access remote memory, of which a device is held so long: the ticket."""

    def way(
        self,
        job: int,
        rank: int,
        src: int,
        dst: int,
        channel: int,
        priority: int | None,
        like: int,
        peer: int,
    ) -> Any:
        """What transfers of a rank, on ``src``, to an endpoint have in common."""

    def transfer(self, way: Any, size: int, whom: Any) -> None:
        """Have a rank send to an endpoint, where nobody has to ask for it."""

    def message(
        self, job: int, rank: int, peer: int, size: int, tag: int, like: int, whom: Any, *, sends: bool
    ) -> None:
        """Post one end of a message between ranks."""

    def collective(
        self, job: int, ranks: tuple[int, ...], position: int | None, asked: AskedCollective, like: int
    ) -> int:
        """Have all ranks of a group come to its next collective, or the one at ``position`` alone."""

    def carry(
        self, ends: tuple[int, int, int, int], met: int, size: int, rank: int, number: int, whom: Any
    ) -> None:
        """Start the ``number``-th flow of a rendezvous that code carries, between nodes.

        ``ends``: job, source, destination, channel; ``rank`` is the lowest of its group.
        """

    def came(self, ticket: int) -> Any:
        """A ticket is through: whom to tell."""

    def parts(self, ticket: int, ranks: int) -> tuple[tuple[int, ...], int]:
        """When each of the ranks ended what just came, and how many messages that took as a collective."""

    def issue(self) -> None:
        """Issue now what was asked for."""


class LiveReplay(Protocol):
    """A replay, by numbers of jobs and ranks."""

    @property
    def driver(self) -> RanksDriver:
        """Who has ranks do something."""

    @property
    def network(self) -> NetworkSimulator:
        """The network."""

    @property
    def now_ps(self) -> int:
        """The time."""

    @property
    def jobs(self) -> Sequence[ReadyJob]:
        """All jobs so far."""

    def tell(self, whom: Told) -> None:
        """Tell somebody what ends, before anything starts that follows from it."""

    def begin(self) -> None:
        """Open the network, and have jobs begin when their time comes."""

    def add(self, info: JobInfo) -> int:
        """Have one more job take part, from its start on, which is not before now: its number."""

    def order(self, order: JobOrder) -> None:
        """Have a job do as it is ordered from now on."""

    def pause(self, number: int) -> int:
        """Have a job's ranks begin no iteration that none of them has begun: how many those are."""

    def resume(self, number: int, *, begins: bool) -> None:
        """Have a job that was paused go on now; ``begins``: unless its start is to come."""

    def shorten(self, number: int, iterations: int) -> None:
        """Have a job be over after fewer iterations, of which none is less than those begun."""

    def watch(self, number: int) -> None:
        """Tell from now on when an iteration of a job's rank ends."""

    def iterations_done(self, number: int) -> int:
        """Iterations that every rank of a job has ended."""

    def waits_for(self, number: int, rank: int) -> list[Waiting]:
        """What a rank of a job with programs has under way, by when it began."""

    def issued(self, number: int, rank: int) -> int:
        """How many operations a driven rank was given."""

    def slowness(self, number: int, rank: int) -> int:
        """How much longer a rank computes now, in millionths."""

    def met(self, number: int) -> MetCollective:
        """A rendezvous that code carries."""

    def leave_carried(self, met: int, position: int, messages: int, *, is_last: bool) -> None:
        """A rank is done now with a rendezvous that code carries, which has sent so many messages."""

    def done(self) -> tuple[int, int]:
        """Operations that ended and messages that arrived."""

    def is_idle(self) -> bool:
        """Whether nothing is to come of which the time is known."""

    def check_finished(self, more: Callable[[], Sequence[str]] = ...) -> None:
        """See that nobody waits, of the ranks or of whom ``more`` says."""

    def records(self, interrupted: str = "") -> Records:
        """What happened so far."""

    def interruption(self) -> str:
        """What is said of a run that a KeyboardInterrupt ended."""

    def close_network(self) -> None:
        """Have the network let go of everything."""
