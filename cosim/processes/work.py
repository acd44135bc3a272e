"""What processes have ranks do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from cosim.engine.driven import AskedCollective
from cosim.engine.live import RanksDriver
from cosim.engine.plans import By
from cosim.engine.programs import COLLECTIVES
from cosim.errors import WorkloadError
from cosim.network.flows import I32
from cosim.processes.waiting import WorkEvent
from cosim.registry import nearest
from cosim.units import NEVER, format_size, format_time, parse_size
from cosim.workload.operation import ACCESSES, OpKind

if TYPE_CHECKING:
    from cosim.processes.simulation import Simulation

MOST_CHANNELS = 1 << 30
"""A pair of endpoints has fewer."""
Time = int | str
"""Picoseconds, or a text with a unit: ``12ms``."""
Size = int | str
"""Bytes, or a text with a unit: ``400MB``."""
Ranks = int | Iterable[int]
"""A rank, or several."""
End = int | str
"""A rank, or an endpoint by its name in the topology."""


class HowCarried(TypedDict, total=False):
    """What else may be said of a collective: see :meth:`RankWork.collective`."""

    rank: int | None
    algorithm: By
    priority: int | None
    name: str


class RankWork(ABC):
    """What the ranks of a driven job can be had to do.

    Each method gives an event, which happens when that has ended on every rank; its value is an
    :class:`~cosim.processes.waiting.Outcome`. Ranks are numbers in the job. Sizes are bytes and times
    picoseconds, or texts with a unit. What a rank does at once it does beside each other: a
    :class:`simpy.Resource` makes it do one thing after another.
    """

    _sim: Simulation
    """Whose events they are."""

    @property
    @abstractmethod
    def job_number(self) -> int:
        """Among the jobs of the run."""

    @property
    def _driver(self) -> RanksDriver:
        return self._sim.driver

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return len(self._seats)

    @cached_property
    def _seats(self) -> list[int]:
        """Where each rank sits: a driven job does not move."""
        seats: list[int] = self._sim.engine_job(self.job_number).info.endpoints.tolist()
        return seats

    def compute(self, ranks: Ranks, time: Time, name: str = "compute") -> WorkEvent:
        """Have ranks compute for so long.

        Raises
        ------
        WorkloadError
            A rank that is not there, or a time that is none.
        """
        numbers, duration = self._array(ranks), self._time(time)
        like = self._driver.like(OpKind.COMPUTE, name)
        durations = self._sim.paced(self.job_number, numbers, duration)
        ticket = self._driver.compute(self.job_number, numbers, durations, like)
        return self._sim.work(ticket, len(numbers), (name, format_time(duration), "on", _some(numbers)))

    def memory(self, ranks: Ranks, access: str, size: Size, name: str = "") -> WorkEvent:
        """Have each of some ranks ``load`` or ``store`` so many bytes in the scenario's ``memory``, which
        times it: who comes first to a device is served first.

        Raises
        ------
        WorkloadError
            A rank that is not there, an access or a size that is none; or the scenario has no memory.
        """
        if access not in ACCESSES:
            raise WorkloadError(f"memory has no access {access!r}; there are load and store")
        numbers, number, name = self._array(ranks), self._size(size), name or access
        duration = self._sim.access_ps(number)
        like = self._driver.like(OpKind.MEMORY, name, access=access)
        ticket = self._driver.access(self.job_number, numbers, number, duration, like)
        return self._sim.work(ticket, len(numbers), (name, format_size(number), "on", _some(numbers)))

    def transfer(
        self,
        src: End,
        dst: End,
        size: Size,
        *,
        priority: int | None = None,
        channel: int = 0,
        name: str = "transfer",
    ) -> WorkEvent:
        """Send bytes from a rank to a rank or an endpoint, where nobody has to ask for them.

        Parameters
        ----------
        src, dst
            Ranks, or names of endpoints.
        size
            Bytes.
        priority
            0 goes first, where the network has priorities; None: the job's.
        channel
            Messages of one (source, destination, channel) go in order.
        name
            What the page calls it.

        Raises
        ------
        WorkloadError
            An endpoint that is not there, or a size that is none.
        """
        said = src, dst, channel, priority, name
        try:
            way = self._ways[said]
        except KeyError:
            way = self._ways[said] = self._way(*said)
        except TypeError:  # an array with one number is one, too
            way = self._way(*said)
        number = size if type(size) is int and 0 <= size < NEVER else self._size(size)
        sim = self._sim
        event = sim.asked((name, number, "bytes from", src, "to", dst))
        sim.driver.transfer(way, number, event)
        return event

    @cached_property
    def _ways(self) -> dict[tuple[End, End, int, int | None, str], Any]:
        """Those of transfers so far, by what was said."""
        return {}

    def _way(self, src: End, dst: End, channel: int, priority: int | None, name: str) -> Any:
        rank = self._rank(src)
        endpoint, peer = self._endpoint(dst)
        if (priority or 0) < 0 or not 0 <= channel < MOST_CHANNELS:
            raise WorkloadError(
                f"{name}: priority {priority} and channel {channel} are 0 or more, and channels below "
                f"{MOST_CHANNELS:,}"
            )
        like = self._driver.like(OpKind.SEND, name, channel=channel)
        return self._driver.way(
            self.job_number, rank, self._seats[rank], endpoint, channel, priority, like, peer
        )

    def send(
        self, src: int, dst: int, size: Size, *, tag: int = 0, channel: int = 0, name: str = "send"
    ) -> WorkEvent:
        """Send a message, which ``dst`` receives: it happens when the message has arrived.

        Raises
        ------
        WorkloadError
            A rank that is not there, or a size that is none.
        """
        return self._message(src, dst, size, tag, channel, name, sends=True)

    def recv(self, dst: int, src: int, size: Size, *, tag: int = 0, name: str = "recv") -> WorkEvent:
        """Receive a message: the n-th from ``src`` with this tag is the n-th that it sends with it.

        Raises
        ------
        WorkloadError
            A rank that is not there, or a size that is none.
        """
        return self._message(dst, src, size, tag, 0, name, sends=False)

    def _message(
        self, here: int, peer: int, size: Size, tag: int, channel: int, name: str, *, sends: bool
    ) -> WorkEvent:
        rank, other, number = self._rank(here), self._rank(peer), self._size(size)
        if rank == other:
            raise WorkloadError(f"{name}: rank {rank} has no peer but itself")
        driver = self._driver
        like = driver.like(OpKind.SEND if sends else OpKind.RECV, name, channel=channel)
        word = "to" if sends else "from"
        event = self._sim.asked((name, number, "bytes of rank", rank, word, "rank", other, "tag", tag))
        driver.message(self.job_number, rank, other, number, tag, like, event, sends=sends)
        return event

    def all_reduce(self, ranks: Ranks, size: Size, **more: Unpack[HowCarried]) -> WorkEvent:
        """See :meth:`collective`."""
        return self.collective("all_reduce", ranks, size, **more)

    def all_gather(self, ranks: Ranks, size: Size, **more: Unpack[HowCarried]) -> WorkEvent:
        """See :meth:`collective`."""
        return self.collective("all_gather", ranks, size, **more)

    def reduce_scatter(self, ranks: Ranks, size: Size, **more: Unpack[HowCarried]) -> WorkEvent:
        """See :meth:`collective`."""
        return self.collective("reduce_scatter", ranks, size, **more)

    def all_to_all(self, ranks: Ranks, size: Size, **more: Unpack[HowCarried]) -> WorkEvent:
        """See :meth:`collective`."""
        return self.collective("all_to_all", ranks, size, **more)

    def broadcast(self, ranks: Ranks, size: Size, *, root: int = 0, **more: Unpack[HowCarried]) -> WorkEvent:
        """See :meth:`collective`; ``root`` is a position among the ranks."""
        return self.collective("broadcast", ranks, size, root=root, **more)

    def barrier(self, ranks: Ranks, **more: Unpack[HowCarried]) -> WorkEvent:
        """See :meth:`collective`."""
        return self.collective("barrier", ranks, 0, **more)

    def collective(
        self,
        kind: str,
        ranks: Ranks,
        size: Size,
        *,
        root: int = 0,
        rank: int | None = None,
        algorithm: By = "",
        priority: int | None = None,
        name: str = "",
    ) -> WorkEvent:
        """Have a group of ranks carry out a collective.

        Parameters
        ----------
        kind
            ``all_reduce`` ...
        ranks
            The group, in this order.
        size
            Bytes, as :class:`cosim.plugins.Collective` counts them.
        root
            Position in the group.
        rank
            The one that comes now; the event is its own. None: all come.
        algorithm
            What carries it: a name, or an :class:`cosim.plugins.Algorithm`; empty: as the scenario says.
        priority
            Of its messages: 0 goes first, where the network has priorities; None: the job's.
        name
            What the page calls it; empty: as its kind.

        Raises
        ------
        WorkloadError
            A collective or a rank that is not there, or a size that is none.
        """
        if kind not in COLLECTIVES:
            raise WorkloadError(f"there is no collective {kind!r}{nearest(kind, sorted(COLLECTIVES))}")
        group, number = self._group(ranks), self._size(size)
        if not 0 <= root < len(group):
            raise WorkloadError(f"{kind}: root {root} is no position among {len(group)} ranks")
        position = None
        if rank is not None:
            if rank not in group:
                raise WorkloadError(f"{kind}: rank {rank} is not in its group {_some(group)}")
            position = group.index(rank)
        name = name or kind
        like = self._driver.like(OpKind.COLLECTIVE, name, kind, group, root)
        if priority is not None and priority < 0:
            raise WorkloadError(f"{kind}: priority {priority} is 0 or more")
        asked = AskedCollective(kind, number, root, algorithm, priority)
        ticket = self._driver.collective(self.job_number, group, position, asked, like)
        here = group if rank is None else (rank,)
        what = name, format_size(number), "of", _some(group), "on", _some(here)
        return self._sim.work(ticket, len(here), what)

    # -- what is said --------------------------------------------------------------------------------

    def _array(self, ranks: Ranks) -> I32:
        return np.array(self._group(ranks), np.int32)

    def _group(self, ranks: Ranks) -> tuple[int, ...]:
        if isinstance(ranks, int):
            return (self._rank(ranks),)
        known = ranks if isinstance(ranks, tuple) else tuple(ranks)
        if known in self._sim.known_groups[self.job_number]:
            return known
        group = tuple(self._rank(one) for one in known)
        if not group or len({*group}) < len(group):
            raise WorkloadError(
                f"ranks {list(group)[:8]}: a group has at least one rank, and each of them once"
            )
        self._sim.known_groups[self.job_number].add(group)
        return group

    def _rank(self, rank: End) -> int:
        if isinstance(rank, str):
            _, number = self._endpoint(rank)
            if number < 0:
                raise WorkloadError(
                    f"no rank of {self._sim.engine_job(self.job_number).info.name} is on {rank!r}"
                )
            return number
        try:
            number = int(rank)
        except (TypeError, ValueError):
            raise WorkloadError(f"{rank!r} is not a rank") from None
        if number != rank or not 0 <= number < self.world_size:
            raise WorkloadError(f"there is no rank {rank}; there are 0 to {self.world_size - 1}")
        return number

    def _endpoint(self, end: End) -> tuple[int, int]:
        """(An endpoint, the rank of this job on it; -1: none is)."""
        if not isinstance(end, str):
            rank = self._rank(end)
            return self._seats[rank], rank
        endpoint = self._sim.endpoint(end)
        return endpoint, self._seats.index(endpoint) if endpoint in self._seats else -1

    def _size(self, size: Size) -> int:
        return self._sim.said(size, parse_size, "size")

    def _time(self, time: Time) -> int:
        return self._sim.delay_ps(time)


class DrivenRanks(RankWork):
    """The ranks of a job that a process drives."""

    def __init__(self, sim: Simulation, number: int) -> None:
        self._sim, self._number = sim, number
        self.name = sim.engine_job(number).info.name

    def __repr__(self) -> str:
        return f"<job {self.name}: {self.world_size} ranks>"

    @property
    def job_number(self) -> int:
        """Among the jobs of the run."""
        return self._number


def _some(ranks: Sequence[int] | Any) -> str:
    """``ranks 0, 1, 2 ... of 64``."""
    chosen = [int(one) for one in ranks[:4]]
    text = ", ".join(map(str, chosen))
    if len(ranks) == 1:
        return f"rank {text}"
    return f"ranks {text}" if len(ranks) <= len(chosen) else f"ranks {text} ... of {len(ranks)}"
