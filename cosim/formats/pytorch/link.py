"""Links: Kineto's events to their ET nodes; then the ranks' communications to each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from cosim.errors import MismatchError, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.formats.pytorch.communication import MESSAGES, RECORD, ROOTED, SILENT, RecordedComm
from cosim.formats.pytorch.execution_trace import ExecutionTrace
from cosim.formats.pytorch.kineto import HostEvent, Timeline
from cosim.units import PS_PER_US, format_size, format_time

_RARE = 50
_CLOCKS_AGREE_PS = 100 * PS_PER_US


def link(timeline: Timeline, trace: ExecutionTrace, report: ReportBuilder) -> None:
    """Give Kineto's operators their ET node, and communications what the ET says of them.

    Both have a thread's operators in order of their calls. Where the names are the same one after another,
    the n-th is the n-th. Otherwise Kineto's External id and the ET's rf_id help, which count the same
    operators from beginnings of their own: they differ by a constant, found by names. What is left of the
    communications is linked in order.
    """
    threads: dict[str, list[HostEvent]] = defaultdict(list)
    for call in timeline.calls:
        if not call.runtime and call.external is not None and not call.name.startswith("ProfilerStep#"):
            threads[call.thread].append(call)
    sequences: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for _, (node, name, thread) in sorted(trace.names.items()):
        if not name.startswith(("[pytorch|", "ProfilerStep#", "## process_group:init")):
            sequences[thread].append((node, name))
    for calls in threads.values():
        calls.sort(key=lambda call: (call.external or 0, call.begin))
        if not _link_by_names(calls, sequences, trace):
            _link_by_distance(calls, trace)
    _link_in_order(timeline, trace, report)
    operators = [call for call in timeline.calls if not call.runtime]
    linked = sum(call.node is not None for call in operators)
    report.read("Kineto operator linked to its ET node", linked)
    report.ignored("Kineto operator without an ET node (its time counts)", len(operators) - linked)
    report.ignored("ET node without a Kineto operator", trace.count - linked)


def _link_by_names(
    calls: list[HostEvent], sequences: dict[int, list[tuple[int, str]]], trace: ExecutionTrace
) -> bool:
    """Find a thread's calls, all of them, in a thread of the ET, or the other way round."""
    mine = [call.name for call in calls]
    for thread, nodes in sequences.items():
        theirs = [name for _, name in nodes]
        if len(mine) < len(theirs):
            start = _position(mine, theirs)
            pairs = None if start is None else zip(calls, nodes[start:], strict=False)
        else:
            start = _position(theirs, mine)
            pairs = None if start is None else zip(calls[start:], nodes, strict=False)
        if pairs is not None:
            for call, (node, _) in pairs:
                call.node = node
                call.comm = _better(call.comm, trace.comms.get(node))
            del sequences[thread]
            return True
    return False


def _better(kineto: RecordedComm | None, et: RecordedComm | None) -> RecordedComm | None:
    """What Kineto says, unless that is not enough: it cuts lists short, which an ET has whole."""
    return et if kineto is None or (kineto.problem and et is not None) else kineto


def _position(part: list[str], whole: list[str]) -> int | None:
    """Where ``part`` stands in ``whole``, if it is long enough to tell."""
    if len(part) < 2:
        return None
    for start in range(len(whole) - len(part) + 1):
        # Eight names first: nearly all places are told apart by these, and no long list is copied.
        if whole[start : start + 8] == part[:8] and whole[start : start + len(part)] == part:
            return start
    return None


def _link_by_distance(calls: list[HostEvent], trace: ExecutionTrace) -> None:
    by_name: dict[str, list[int]] = defaultdict(list)
    for rf_id, (_, name, _) in trace.names.items():
        by_name[name].append(rf_id)
    votes: Counter[int] = Counter()
    for call in calls:
        candidates = by_name.get(call.name, [])
        # Names that are everywhere (an add, a copy) would vote for every distance alike.
        if len(candidates) <= _RARE:
            votes.update((call.external or 0) - rf_id for rf_id in candidates)
    if not votes:
        return
    # The distance that most agree on; of two alike the shorter, so that the order of calls doesn't matter.
    offset = max(votes, key=lambda value: (votes[value], -abs(value)))
    for call in calls:
        node = trace.names.get((call.external or 0) - offset)
        if node is not None and node[1] == call.name:
            call.node = node[0]
            call.comm = _better(call.comm, trace.comms.get(node[0]))


def _link_in_order(timeline: Timeline, trace: ExecutionTrace, report: ReportBuilder) -> None:
    calls = [call for call in timeline.calls if call.name == RECORD]
    missing = [call for call in calls if call.comm is None]
    if not missing:
        return
    taken = {call.node for call in calls}
    left = [number for number in trace.comms if number not in taken]
    if len(left) != len(missing):
        raise WorkloadError(
            f"{len(missing)} communications have no node in {trace.file}, which has {len(left)} others",
            location=missing[0].place,
            hint="are both traces of the same rank and the same steps?",
        )
    for call, number in zip(missing, left, strict=True):
        call.node, call.comm = number, trace.comms[number]
    report.assumed("communication linked to its ET node by its order, not by rf_id", len(missing))


def resolve_groups(
    comms: Sequence[RecordedComm],
    rank: int,
    world_size: int,
    known: Mapping[str, tuple[int, ...]],
    report: ReportBuilder,
) -> dict[str, tuple[int, ...]]:
    """The ranks of each group that a rank's communications name.

    Raises
    ------
    WorkloadError
        Several groups whose ranks the trace doesn't say, or one that the rank isn't in.
    """
    everyone = tuple(range(world_size))
    found: dict[str, tuple[int, ...]] = {}
    for comm in comms:
        if comm.group in found or comm.kind == "wait" or comm.kind in SILENT:
            continue
        ranks = comm.ranks or known.get(comm.group)
        if ranks is None and comm.group_size == world_size:
            ranks = everyone
        elif ranks is None and (ranks := _continued(comm)):
            report.assumed(f"process group {comm.group!r}, cut short in the trace, goes on as it begins")
        elif ranks is None:
            if comm.group_size or found:
                raise WorkloadError(
                    f"of process group {comm.group!r} the trace doesn't say the ranks",
                    location=comm.place,
                    hint=f"PyTorch since 2.3 writes them; or say: `groups: {{{comm.group!r}: [[0, 1]]}}`",
                )
            report.assumed(
                f"process group {'without a name' if not comm.group else ''} is all ranks".replace("  ", " ")
            )
        elif comm.ranks is None:
            report.read(f"process group {comm.group[:40]!r} by name")
        found[comm.group] = ranks = ranks or everyone
        wrong = [other for other in ranks if other >= world_size]
        if wrong or rank not in ranks:
            raise WorkloadError(
                f"process group {comm.group!r} is {_shown(ranks)}; this is rank {rank} of {world_size}",
                location=comm.place,
            )
    return found


def _continued(comm: RecordedComm) -> tuple[int, ...] | None:
    """A group of which the first ranks are known, where these are equally far apart."""
    first = comm.first_ranks
    if len(first) < 3 or len({b - a for a, b in pairwise(first)}) > 1:
        return None
    return tuple(first[0] + k * (first[1] - first[0]) for k in range(comm.group_size))


@dataclass(slots=True)
class MatchedComm:
    """One collective of a group: each rank's part. ``splits`` are set where they are uneven."""

    ranks: tuple[int, ...]
    parts: dict[int, tuple[RecordedComm, HostEvent | None]]
    number: int
    network_ps: int = 0
    """How long the NCCL kernel of the rank that came last ran."""

    @property
    def uneven(self) -> bool:
        """Whether it is carried as messages: an all-to-all whose parts differ in size, from or to a root."""
        comms = [comm for comm, _ in self.parts.values()]
        if comms[0].kind != "all_to_all":
            return comms[0].kind in ROOTED
        even = (one.size_bytes // len(self.ranks) for one in comms if one.splits is None)
        return len({*even, *(size for one in comms for size in one.splits or ())}) > 1


def match_comms(by_rank: Sequence[Sequence[tuple[RecordedComm, tuple[int, ...]]]]) -> list[dict[int, int]]:
    """For each rank, position of each of its collectives -> number of the communication, equal on its ranks.

    Raises
    ------
    MismatchError
        Ranks that don't do the same.
    """
    numbers: dict[tuple[tuple[int, ...], int], int] = {}
    first: dict[int, tuple[int, RecordedComm]] = {}
    found: list[dict[int, int]] = []
    counts: list[Counter[tuple[int, ...]]] = []
    for rank, listed in enumerate(by_rank):
        count: Counter[tuple[int, ...]] = Counter()
        mine: dict[int, int] = {}
        for position, (comm, ranks) in enumerate(listed):
            if comm.kind in MESSAGES:
                continue  # the engine pairs the n-th SEND to a rank with the n-th RECV there
            number = numbers.setdefault((ranks, count[ranks]), len(numbers))
            count[ranks] += 1
            mine[position] = number
            other, theirs = first.setdefault(number, (rank, comm))
            _same(rank, comm, other, theirs, count[ranks])
        found.append(mine)
        counts.append(count)
    if len(by_rank) == 1:  # it stands for all
        return found
    for ranks in {ranks for count in counts for ranks in count}:
        done = {rank: counts[rank][ranks] for rank in ranks}
        if len(set(done.values())) > 1:
            most, least = max(done, key=lambda r: done[r]), min(done, key=lambda r: done[r])
            raise MismatchError(
                f"group {_shown(ranks)}: rank {most} has {done[most]} collectives, rank {least} has"
                f" {done[least]}; are all traces of the same step?"
            )
    return found


def _same(rank: int, comm: RecordedComm, other: int, theirs: RecordedComm, count: int) -> None:
    even = comm.kind not in ("all_to_all", *ROOTED)
    if comm.kind != theirs.kind or (even and comm.size_bytes != theirs.size_bytes):
        raise MismatchError(
            f"collective {count} of a group: rank {rank} has {comm.kind} of {format_size(comm.size_bytes)}"
            f" ({comm.place}), rank {other} has {theirs.kind} of {format_size(theirs.size_bytes)}"
            f" ({theirs.place})"
        )


def align_clocks(ends: Sequence[Mapping[int, int]], report: ReportBuilder) -> list[int]:
    """What to take from each rank's times so that collectives end everywhere at once; 0 where clocks agree.

    ``ends`` is, for each rank, the measured end of each communication.
    """
    offsets = [0]
    for rank in range(1, len(ends)):
        apart = [
            end - (ends[other][number] - offsets[other])
            for other in range(rank)
            for number, end in ends[rank].items()
            if number in ends[other]
        ]
        # The median: what a rank's trace cuts off at its beginning or end is off by any time.
        offset = median_low(apart) if apart else 0
        offsets.append(offset if abs(offset) > _CLOCKS_AGREE_PS else 0)
        if offsets[-1]:
            report.assumed(
                f"rank {rank}'s clock set back by {_signed(offset)}: so its collectives end with the others'"
            )
    return offsets


def _signed(ps: int) -> str:
    return f"-{format_time(-ps)}" if ps < 0 else format_time(ps)


def _shown(ranks: Sequence[int]) -> str:
    return f"[{', '.join(str(rank) for rank in ranks[:8])}{', ...' if len(ranks) > 8 else ''}]"
