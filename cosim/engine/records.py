"""Records: what the engine writes down during a run, and all that results are made from.

Everything is a column; memory grows with operations, of the ranks that they are kept of, and not with
messages, unless those were asked for.
Operation rows come in the order in which they ended (then job, rank, stream, operation).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cosim.network.simulator import NetworkStatistics, QueueSample
from cosim.topology.graph import Topology
from cosim.units import format_time
from cosim.workload.program import Workload

if TYPE_CHECKING:
    from cosim.engine.folding.folding import Folding

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


class Pace(Protocol):
    """How long computations take in fact: stragglers, jitter."""

    def durations_ps(self, rank: int, iteration: int, operation: I64, duration_ps: I64) -> I64:
        """Durations of computations and memory accesses, by their numbers in the rank's program.

        ``duration_ps`` is what the workload says that they take.
        """


class Slowdown(NamedTuple):
    """From ``time_ps`` on what a rank begins to compute takes ``millionths`` of a millionth of its time."""

    time_ps: int
    rank: int
    millionths: int


@dataclass(frozen=True, eq=False)
class MemoryNodes:
    """Where accesses to remote memory are messages: ``node``, int32[endpoints of the topology], the endpoint
    that each one's memory is at; what a node takes before it answers, and bytes of a request and of an
    acknowledgement.
    """

    node: I32
    latency_ps: int
    request_bytes: int


@dataclass(frozen=True, eq=False)
class JobInfo:
    """One job as it was run: rank r of the workload sat on endpoint ``endpoints[r]``.

    ``slowdowns`` come in order of time, and may never end; a job that has some has a ``pace``.
    ``devices``: int32[endpoints of the topology], the memory device that serves each one's accesses, -1: none
    that is shared; None: nothing is accessed, or over the fabric, at ``memory_nodes``.
    ``on_units``: its computations are the network's (:class:`~cosim.network.simulator.Capabilities`).
    ``driven``: its ranks do what processes have them do; its workload is what that was.
    With a ``folding``, these are the representatives of a larger job, which it knows.
    """

    name: str
    workload: Workload
    endpoints: I32
    iterations: int
    start_ps: int
    weight: float = 1.0
    priority: int = 0
    pace: Pace | None = None
    slowdowns: Iterable[Slowdown] = ()
    folding: Folding | None = None
    devices: I32 | None = None
    memory_nodes: MemoryNodes | None = None
    on_units: bool = False
    driven: bool = False

    @property
    def copies(self) -> int:
        """Ranks that each rank stands for, itself among them."""
        return self.folding.copies if self.folding is not None else 1

    @property
    def whole_workload(self) -> Workload:
        """That of all ranks."""
        return self.workload if self.folding is None else self.folding.whole.workload

    @property
    def rank_numbers(self) -> I64:
        """What each rank is called: its number in the whole job."""
        if self.folding is not None:
            return self.folding.translations.representatives
        return np.arange(len(self.endpoints))


@dataclass(frozen=True, eq=False)
class OpRecords:
    """Ended operations: int32 ``job, iteration, rank, op`` (number in the rank's program), int64
    ``start_ps, end_ps``. A collective starts when the rank arrives and ends when the rank is done.
    """

    job: I32
    iteration: I32
    rank: I32
    op: I32
    start_ps: I64
    end_ps: I64

    def __len__(self) -> int:
        return len(self.job)


class CollectiveRecord(NamedTuple):
    """One collective of one group: ``start_ps`` is its first arrival, ``ready_ps`` its last, ``end_ps`` when
    its last rank was done. ``name`` is the operation's, ``algorithm`` what carried it. In a folded job
    ``ranks`` are the simulated ones of the group, of whom each stands for ``folded``, and it stands for
    ``copies`` collectives, of as many groups.
    """

    job: int
    iteration: int
    op: int
    name: str
    collective: str
    algorithm: str
    ranks: tuple[int, ...]
    size_bytes: int
    messages: int
    start_ps: int
    ready_ps: int
    end_ps: int
    copies: int = 1
    folded: int = 1

    @property
    def group_size(self) -> int:
        """Ranks of the group, simulated or not."""
        return len(self.ranks) * self.folded


@dataclass(frozen=True, eq=False)
class FctHistogram:
    """Flow completion times: counts in logarithmic bins of 1/64 relative width, plus exact extremes.

    ``edges_ps[i] <= fct < edges_ps[i + 1]`` falls into ``counts[i]``. Marks (a rank to itself) are not
    counted.
    """

    edges_ps: I64
    counts: I64
    min_ps: int
    max_ps: int
    sum_ps: int


@dataclass(frozen=True, eq=False)
class ListedBytes:
    """Bytes that arrived one by one: of a pair, in a bin."""

    shape: tuple[int, int]
    """Bins, pairs."""
    pair: I32
    bin: I32
    size_bytes: I64

    def in_bins(self) -> I64:
        """int64[bins, pairs]."""
        found = np.zeros(self.shape, np.int64)
        np.add.at(found, (self.bin, self.pair), self.size_bytes)
        return found

    def sum(self, axis: int) -> I64:
        """The sum of each pair: over bins, ``axis`` 0."""
        assert axis == 0
        found = np.zeros(self.shape[1], np.int64)
        np.add.at(found, self.pair, self.size_bytes)
        return found


@dataclass(frozen=True, eq=False)
class TrafficRecord:
    """Bytes that arrived, rank to rank: ``size_bytes[b, p]`` in [b, b + 1) * ``bin_ps`` from endpoint
    ``src[p]`` to endpoint ``dst[p]``; pairs that never talk have no column.

    ``simulated`` are those of the first pairs, of which all others are images, as many after as many: in
    bins, or, where these would be nearly empty, listed.
    """

    bin_ps: int
    src: I32
    dst: I32
    simulated: I64 | ListedBytes

    @cached_property
    def simulated_bytes(self) -> I64:
        """int64[bins, simulated pairs]."""
        return self.simulated.in_bins() if isinstance(self.simulated, ListedBytes) else self.simulated

    @cached_property
    def size_bytes(self) -> I64:
        """int64[bins, pairs]."""
        return self._of_all(self.simulated_bytes)

    @cached_property
    def pair_bytes(self) -> I64:
        """Over all times: int64[pairs]."""
        return self._of_all(self.simulated.sum(axis=0))

    def _of_all(self, values: I64) -> I64:
        copies = len(self.src) // max(values.shape[-1], 1)
        return values if copies <= 1 else np.tile(values, copies)


@dataclass(frozen=True, eq=False)
class MessageRecords:
    """Every message, where it was asked for; sorted by (end, key)."""

    job: I32
    iteration: I32
    op: I32
    src: I32
    dst: I32
    size_bytes: I64
    start_ps: I64
    end_ps: I64


@dataclass(frozen=True, eq=False)
class Series:
    """Queues and rates over time, where they were asked for: at ``at_ps``, each ``every_ps``, which is
    ``asked_ps`` or, where that would have been too many, a power of two times as long.

    ``queues`` are float64[times, links] each, of ``links`` by number. Of ``names``, jobs and then pairs of
    endpoints, [times, names]: bits per second, bytes of all windows (NaN where there are none), the part
    that was marked, and connections that send.
    """

    asked_ps: int
    every_ps: int
    at_ps: I64
    links: I64
    queues: QueueSample
    names: tuple[str, ...]
    rate_bps: F64
    window_bytes: F64
    marked: F64
    connections: I64


@dataclass(frozen=True, eq=False)
class Records:
    """What the engine wrote down of a run; of :class:`cosim.Run`, ``records``.

    ``interrupted`` says why it stopped early, or is empty; what was computed until then is kept.
    ``recorded``: the ranks of each job that ``ops`` are of; None: all. ``series``: queues and rates over
    time, where they were asked for.

    ``finish_ps[job][rank]`` is when the rank ended its last operation, -1 where it ended none;
    ``iteration_end_ps[job]`` is int64 [iterations done] x [ranks]. ``digest`` is a hex string over every
    completion and every operation's start and end. ``wall_s`` and ``cpu_s`` are the only values that differ
    between two equal runs.

    Examples
    --------
    >>> import cosim
    >>> records = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''').records
    >>> records.end_ps, records.num_messages
    (600000000, 24)
    >>> records.iteration_end_ps[0]
    array([[600000000, 600000000, 600000000, 600000000]])
    """

    topology: Topology
    network: str
    release: str
    seed: int
    jobs: tuple[JobInfo, ...]
    ops: OpRecords
    collectives: Sequence[CollectiveRecord]
    finish_ps: tuple[I64, ...]
    iteration_end_ps: tuple[I64, ...]
    fct: FctHistogram
    traffic: TrafficRecord
    links: NetworkStatistics
    num_messages: int
    end_ps: int
    digest: str
    wall_s: float
    cpu_s: float
    messages: MessageRecords | None = None
    interrupted: str = ""
    recorded: tuple[I64, ...] | None = None
    series: Series | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        where = f"{self.topology.name}, network {self.network}"
        return f"<Records on {where}: {format_time(self.end_ps)} simulated>"


@dataclass(frozen=True, slots=True)
class ProgressInfo:
    """Times are picoseconds; ``messages`` have arrived."""

    now_ps: int
    operations_done: int
    operations_total: int
    messages: int
