"""Rings and trees that NCCL logged: which ring each channel has, and whether a model has the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cosim.captures.traffic import LoggedCommunicator

SAME = "as in a"
BETWEEN = "between hosts as in a, in another order inside"
OTHER = "not in a"


@dataclass(frozen=True)
class ChannelRing:
    """A ring and the channels that have it.

    Attributes
    ----------
    channels
        Their numbers.
    order
        Ranks from 0 on, or from the first that is known, as far as the log tells.
    steps
        How many ranks have a known next one.
    """

    channels: tuple[int, ...]
    order: tuple[int, ...]
    steps: int


@dataclass(frozen=True, eq=False)
class CommunicatorAnalysis:
    """Communicators that are alike.

    Attributes
    ----------
    communicator
        The first of them.
    count
        How many.
    rings
        In order of their first channels.
    connections
        Words such as ``P2P/IPC/read``, and how many connections have them.
    """

    communicator: LoggedCommunicator
    count: int
    rings: tuple[ChannelRing, ...]
    connections: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class RingDifference:
    """A ring of b beside a's: ``verdict`` is one of this module's; ``nics`` and ``expected_nics`` are those
    by which b's and a's rings leave hosts, as far as they are known.
    """

    communicator: str
    ring: ChannelRing
    verdict: str
    nics: tuple[int, ...]
    expected_nics: tuple[int, ...]


@dataclass(frozen=True)
class RingsDifference:
    """How b's rings and trees differ from a's; see :class:`RingDifference`.

    ``channels`` are a's and b's of the first communicator, 0: not told. ``trees`` are places of ranks in
    trees that agree, and all that both have. ``missing`` are communicators that only b has.
    """

    rings: tuple[RingDifference, ...]
    channels: tuple[int, int]
    trees: tuple[int, int]
    missing: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What a person would say."""
        rows, (agree, total) = self.rings, self.trees
        if not rows:
            return "b has no rings that can be set beside a's"
        of = sum(len(row.ring.channels) for row in rows)
        counted = Counter(dict.fromkeys((SAME, BETWEEN, OTHER), 0))
        for row in rows:
            counted[row.verdict] += len(row.ring.channels)
        said = [f"rings of {number} of {of} channels {how}" for how, number in counted.items() if number]
        ours, theirs = self.channels
        if ours and ours != theirs:
            said.append(f"{theirs} channels where a has {ours}")
        if total:
            said.append(f"{agree} of {total} places in trees as in a")
        return f"b has {', '.join(said)}"


def analyse_communicators(found: Iterable[LoggedCommunicator]) -> tuple[CommunicatorAnalysis, ...]:
    """Say which rings communicators have; those alike become one."""
    alike: dict[str, list[LoggedCommunicator]] = {}
    for one in found:
        nexts = sorted((channel, sorted(steps.items())) for channel, steps in one.nexts.items())
        parents = sorted((channel, sorted(above.items())) for channel, above in one.parents.items())
        key = repr((one.num_ranks, one.num_hosts, one.num_channels, nexts, parents))
        alike.setdefault(key, []).append(one)
    return tuple(
        CommunicatorAnalysis(same[0], len(same), _rings(same[0]), _connections(same[0]))
        for same in alike.values()
    )


def _rings(one: LoggedCommunicator) -> tuple[ChannelRing, ...]:
    channels: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for channel, nexts in sorted(one.nexts.items()):
        channels.setdefault(tuple(sorted(nexts.items())), []).append(channel)
    return tuple(
        ChannelRing(tuple(those), _walk(dict(steps)), len(steps)) for steps, those in channels.items()
    )


def _walk(nexts: Mapping[int, int]) -> tuple[int, ...]:
    """Ranks from 0 on, else from one that nobody known precedes, as far as it is known."""
    first = 0 if 0 in nexts else min(set(nexts) - set(nexts.values()), default=min(nexts))
    order = dict.fromkeys([first])
    rank = first
    while (after := nexts.get(rank)) is not None and after not in order:
        order[after] = None
        rank = after
    return tuple(order)


def _connections(one: LoggedCommunicator) -> tuple[tuple[str, int], ...]:
    heard = {way: how for way, how in one.received.items() if way not in one.ways}
    return tuple(Counter([*one.ways.values(), *heard.values()]).most_common())


def rings_beside(
    ours: Sequence[CommunicatorAnalysis], theirs: Sequence[CommunicatorAnalysis]
) -> RingsDifference:
    """Set b's rings beside a's: communicators of as many ranks, in order."""
    left = [one.communicator for one in ours]
    rows: list[RingDifference] = []
    missing: list[str] = []
    trees = Counter[bool]()
    channels = (0, 0)
    for one in theirs:
        mine = one.communicator
        found = next((each for each in left if each.num_ranks == mine.num_ranks and each.nexts), None)
        if found is None:
            missing.append(mine.name)
            continue
        left.remove(found)
        channels = channels if any(channels) else (found.num_channels, mine.num_channels)
        rows += [_ring(found, mine, ring) for ring in one.rings]
        trees.update(_trees(found, mine))
    return RingsDifference(tuple(rows), channels, (trees[True], trees.total()), tuple(missing))


def _ring(a: LoggedCommunicator, b: LoggedCommunicator, ring: ChannelRing) -> RingDifference:
    steps = b.nexts[ring.channels[0]]
    best, agree = 0, -1
    for channel, nexts in a.nexts.items():
        same = sum(nexts.get(src) == dst for src, dst in steps.items())
        if same > agree:
            best, agree = channel, same
    nexts = a.nexts[best]
    hosts = a.hosts or b.hosts
    between = {(src, dst) for src, dst in steps.items() if hosts.get(src) != hosts.get(dst)}
    verdict = OTHER
    if agree == len(steps):
        verdict = SAME
    elif between and all(nexts.get(src) == dst for src, dst in between):
        verdict = BETWEEN
    # A tree's connections are not among the ring's steps.
    either = b.received | b.ways
    told = [
        (channel, *step) for channel in ring.channels for step in nexts.items() if (channel, *step) in either
    ]
    nics = {nic for way in told if (nic := _nic(either[way])) is not None}
    expected = {nic for way, how in a.ways.items() if way[0] == best and (nic := _nic(how)) is not None}
    return RingDifference(b.name, ring, verdict, tuple(sorted(nics)), tuple(sorted(expected)))


def _nic(way: str) -> int | None:
    found = re.match(r"NET/(?:[^/]+/)?(\d+)", way)
    return int(found[1]) if found else None


def _trees(a: LoggedCommunicator, b: LoggedCommunicator) -> Iterable[bool]:
    """Whether both have the same rank above, for each rank's place in a tree."""
    for channel, parents in b.parents.items():
        known = a.parents.get(channel % len(a.parents) if a.parents else channel, {})
        yield from (known[rank] == above for rank, above in parents.items() if rank in known)
