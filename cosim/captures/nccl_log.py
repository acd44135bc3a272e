"""What NCCL prints of its communicators with ``NCCL_DEBUG=INFO``: rings, trees, and how ranks are connected.

Source: NVIDIA/nccl, 2.4 to 2.30: ``init.cc``, ``graph/rings.cc``, ``transport/{net,p2p,shm}.cc``. Lines begin
``host:pid:tid [device] NCCL INFO``, with anything before; those of several ranks may be mixed, and two may
stand in one line:

- ``comm 0x.. rank 3 nranks 32 .. commId 0x.. - Init COMPLETE``: a rank; a ``commId`` since 2.18.
- ``Channel 00/08 :    0   7   6 ..``: a ring, from rank 0. It is cut after 20 ranks, or 128 characters.
- ``Ring 00 : 25 -> 0 -> 7``: who comes before and after a rank (2.14 and later, ``NCCL_DEBUG_SUBSYS=GRAPH``).
- ``Trees [0] 1/16/-1->0->-1``: who is below a rank, and who above; before 2.5 the other way round.
- ``Channel 00/0 : 0[10000] -> 7[ca000] via P2P/IPC/read``, ``.. [send] via NET/IB/0/GDRDMA``: a connection.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from cosim.captures.traffic import LoggedCommunicator, TrafficCapture
from cosim.errors import InputError, Location

MARK = b"NCCL INFO "
_LOOKED_BYTES = 16 << 20
_MOST_LINE = 1 << 16
_CUT_RANKS = 20
"""Older versions print so many ranks of a ring."""
_CUT_TREES = 1000
"""A line of trees that is about so long is cut."""
_SHOWN = 3
_UNKNOWN = "unknown ranks"

_LINE = re.compile(r"(?:([^\s:<>\]]{1,255}):(\d+):(\d+) )?\[(\d{1,9})\] NCCL INFO ")
_VERSION = re.compile(r"NCCL version (\d{1,9}(?:\.\d{1,9}){1,3})")
_RANK = re.compile(r"comm (?:0x)?[0-9a-f]+ rank (\d{1,9}) n[rR]anks (\d{1,9})\b(.*)")
_ORDER = re.compile(r"Channel (\d{1,9})/(\d{1,9}) :((?: +\d{1,9})+)\s*(\.*)$")
_RING = re.compile(r"Ring (\d{1,9}) : (-?\d{1,9}) -> (\d{1,9}) -> (-?\d{1,9})\s*$")
_TREE = re.compile(r" \[(\d{1,9})\] (-?\d{1,9}(?:/-?\d{1,9})*)->(\d{1,9})->(-?\d{1,9}(?:/-?\d{1,9})*)")
_WAY = re.compile(
    r"(?:Channel|Ring) (\d{1,9})(?:/\d+)? : (\d{1,9})(?:\[\w+\])? -> (\d{1,9})(?:\[\w+\])? "
    r"(?:\[(send|receive)\] )?via (\S.*)"
)


_Who = tuple[str, str, str, int]


@dataclass
class _RankLines:
    """What one rank said of one communicator."""

    host: str = ""
    rank: int = -1
    num_ranks: int = 0
    nodes: int = 0
    comm_id: str = ""
    channels: int = 0
    complete: bool = False
    cut: bool = False
    orders: dict[int, list[int]] = field(default_factory=dict)
    rings: dict[int, tuple[int, int]] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    ways: dict[tuple[int, int, int], str] = field(default_factory=dict)
    received: dict[tuple[int, int, int], str] = field(default_factory=dict)

    @property
    def says(self) -> bool:
        """Anything of rings, trees or connections."""
        return bool(self.orders or self.rings or self.parents or self.ways or self.received)


def has_nccl_lines(path: Path) -> bool:
    """Whether a file is text that has lines of NCCL's among its first 16 MiB."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(4096)
        if b"\0" in start or start.startswith(b"PK"):
            return False
        return MARK in start + file.read(_LOOKED_BYTES)


def nccl_files(folder: Path) -> list[Path]:
    """Files of a folder that have lines of NCCL's, sorted."""
    return sorted(path for path in folder.iterdir() if has_nccl_lines(path))


def read_nccl_log(path: Path, files: Sequence[Path] | None = None) -> TrafficCapture:
    """Read a log, or a folder of ``files``.

    Raises
    ------
    InputError
        No line says what a communicator's rings, trees or connections are.
    """
    files = [path] if files is None else files
    log = _Log()
    for file in files:
        log.read(file)
    parts = [one for one in log.parts if one.says]
    if not parts:
        raise InputError(
            "has lines of NCCL's, and none of rings, trees or connections",
            location=Location(str(path)),
            hint="run with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH, and keep the log's beginning",
        )
    found = _communicators(parts, log.version)
    ranks = sum(len(one.hosts) for one in found)
    version = f"NCCL {log.version}" if log.version else "NCCL"
    notes = [
        f"{log.lines:,} lines of {version}; files: {len(files)}, communicators: {len(found)}, "
        f"ranks that logged: {ranks:,}"
    ]
    notes += [
        f"{one.name}: the log doesn't say how many, and shows {one.num_ranks}"
        for one in found
        if one.name.startswith(_UNKNOWN)
    ]
    notes += [
        f"{one.name}: lines contradict each other: {'; '.join(one.contradictions[:_SHOWN])}"
        for one in found
        if one.contradictions
    ]
    guessed = sum(not part.comm_id for part in parts)
    if guessed and len(parts) > len({part.num_ranks for part in parts}):
        notes.append(
            f"lines of {guessed:,} ranks name no communicator, as NCCL 2.18 and later do: "
            "it is told by ranks and order"
        )
    return TrafficCapture(str(path), "NCCL's log", communicators=tuple(found), notes=tuple(notes))


class _Log:
    def __init__(self) -> None:
        self.parts: list[_RankLines] = []
        self.version = ""
        self.lines = 0
        self._hosts: set[str] = set()
        self._of_thread: dict[_Who, _RankLines] = {}
        self._of_device: dict[tuple[str, str, int], _RankLines] = {}

    def read(self, path: Path) -> None:
        with path.open("rb") as file:
            while line := file.readline(_MOST_LINE):
                if b"NCCL" in line:
                    self._line(line.decode("utf-8", "replace").rstrip())

    def _line(self, line: str) -> None:
        version = _VERSION.search(line)
        if version:
            self.version = self.version or version[1]
        starts = list(_LINE.finditer(line))
        end = len(line)
        said = []
        for start in reversed(starts):
            host, pid, thread, device = start.groups()
            begin = start.start()
            if host is None:  # the beginning was cut off, or a launcher took it
                host, pid, thread = line[:begin].strip() if start is starts[0] else "", "", ""
            elif start is not starts[0]:  # what stood before may run into the host's name
                known = max((one for one in self._hosts if host.endswith(one)), key=len, default=host)
                host, begin = known, begin + len(host) - len(known)
            said.append(((host, pid, thread, int(device)), line[start.end() : end].rstrip()))
            end = begin
        for who, what in reversed(said):
            self.lines += 1
            self._hosts.add(who[0])
            self._said(who, what)

    def _said(self, who: _Who, what: str) -> None:
        if (rank := _RANK.search(what)) is not None:
            self._rank(who, rank)
        elif (order := _ORDER.match(what)) is not None:
            channel, channels = int(order[1]), int(order[2])
            part = self._part(who, lambda one: channel in one.orders)
            part.channels = max(part.channels, channels)
            part.cut = part.cut or bool(order[4])
            part.orders[channel] = [int(one) for one in order[3].split()]
        elif (ring := _RING.match(what)) is not None:
            channel, before, rank_, after = map(int, ring.groups())
            part = self._part(who, lambda one: channel in one.rings or one.rank not in (-1, rank_))
            part.rank = rank_
            part.rings[channel] = before, after
        elif what.startswith("Trees"):
            self._trees(who, what)
        elif (way := _WAY.match(what)) is not None:
            part = self._of_thread.get(who) or self._of_device.get(_device(who)) or self._part(who)
            channel, src, dst = int(way[1]), int(way[2]), int(way[3])
            (part.received if way[4] == "receive" else part.ways)[channel, src, dst] = way[5]

    def _rank(self, who: _Who, found: re.Match[str]) -> None:
        rank, num_ranks, rest = int(found[1]), int(found[2]), found[3]
        if rank >= num_ranks or re.search(r"Destroy|Abort|Revoke", rest):
            return
        part = self._part(who, lambda one: "START" in rest or one.num_ranks not in (0, num_ranks))
        part.rank, part.num_ranks = rank, num_ranks
        nodes = re.search(r"nNodes (\d{1,9})", rest)
        part.nodes = int(nodes[1]) if nodes else part.nodes
        comm_id = re.search(r"commId (0x[0-9a-f]+)", rest)
        part.comm_id = comm_id[1] if comm_id else part.comm_id
        part.complete = part.complete or "COMPLETE" in rest

    def _trees(self, who: _Who, what: str) -> None:
        trees = list(_TREE.finditer(what))
        trees = trees[:-1] if len(what) > _CUT_TREES else trees
        if not trees:
            return
        part = self._part(who, lambda one: bool(one.parents))
        for tree in trees:
            above = tree[4] if "/" in tree[2] else tree[2]
            if "/" not in above:
                part.rank = int(tree[3])
                part.parents[int(tree[1])] = int(above)

    def _part(self, who: _Who, fresh: Callable[[_RankLines], bool] = lambda _: False) -> _RankLines:
        """The thread's communicator; a new one where that one is done, or ``fresh`` says that one began."""
        part = self._of_thread.get(who)
        if part is None or part.complete or fresh(part):
            part = _RankLines(who[0])
            self.parts.append(part)
            self._of_thread[who] = self._of_device[_device(who)] = part
        return part


def _device(who: _Who) -> tuple[str, str, int]:
    return who[0], who[1], who[3]


def _communicators(parts: Iterable[_RankLines], version: str) -> list[LoggedCommunicator]:
    groups: dict[str, list[_GuessedRanks]] = {}
    for part in parts:
        _complete(part)
        alike = groups.setdefault(part.comm_id, [])
        group = next((one for one in alike if part.comm_id or one.fits(part)), None)
        if group is None:
            group = _GuessedRanks()
            alike.append(group)
        group.add(part)
    found, names = [], Counter[str]()
    for comm_id, alike in groups.items():
        for one in alike:
            name = comm_id or (f"{one.num_ranks} ranks" if one.num_ranks else _UNKNOWN)
            names[name] += 1
            named = name if names[name] == 1 else f"{name}, {names[name]}"
            found.append(_merged(named, one.parts, version))
    return found


class _GuessedRanks:
    """Ranks that may be of one communicator, where none names it."""

    def __init__(self) -> None:
        self.parts: list[_RankLines] = []
        self.num_ranks = 0
        self._ranks: set[int] = set()
        self._nexts: dict[tuple[int, int], int] = {}

    def add(self, part: _RankLines) -> None:
        self.parts.append(part)
        self.num_ranks = max(self.num_ranks, part.num_ranks)
        self._ranks.add(part.rank)
        self._nexts |= {(channel, src): dst for channel, src, dst in _steps(part)}

    def fits(self, part: _RankLines) -> bool:
        """Another rank of as many, that says of no ring what others don't."""
        many = {self.num_ranks, part.num_ranks} - {0}
        if part.rank < 0 or part.rank in self._ranks or len(many) > 1 or self.parts[0].nodes != part.nodes:
            return False
        return all(self._nexts.get((channel, src), dst) == dst for channel, src, dst in _steps(part))


def _complete(part: _RankLines) -> None:
    """What one line of a ring says of the number of ranks and, since rank 0 prints it, of the rank."""
    for order in part.orders.values():
        part.rank = 0 if order[0] == 0 and part.rank < 0 else part.rank
        whole = not part.cut and len(order) < _CUT_RANKS and sorted(order) == [*range(len(order))]
        if whole and not part.num_ranks:
            part.num_ranks = len(order)


def _steps(part: _RankLines) -> Iterator[tuple[int, int, int]]:
    """Channel, a rank, and the next one on the channel's ring."""
    for channel, order in part.orders.items():
        if part.num_ranks and len(order) >= part.num_ranks:
            yield from ((channel, *step) for step in zip(order, order[1:] + order[:1], strict=True))
        else:  # the last number may be cut, too, but where older versions stop
            known = order if len(order) == _CUT_RANKS else order[:-1]
            yield from ((channel, *step) for step in pairwise(known))
    for channel, (before, after) in part.rings.items():
        if before >= 0 and after >= 0:
            yield channel, before, part.rank
            yield channel, part.rank, after


def _merged(name: str, group: Sequence[_RankLines], version: str) -> LoggedCommunicator:
    steps = [one for part in group for one in _steps(part)]
    said = max((part.num_ranks for part in group), default=0)
    most = max(
        [rank for _, src, dst in steps for rank in (src, dst)]
        + [rank for part in group for _, *ends in (*part.ways, *part.received) for rank in ends]
        + [part.rank for part in group]
    )
    nexts: dict[int, dict[int, int]] = {}
    before: dict[tuple[int, int], int] = {}
    wrong: dict[str, None] = {}
    for channel, src, dst in steps:
        if said and max(src, dst) >= said:
            wrong[f"rank {max(src, dst)} of {said}"] = None
        elif nexts.setdefault(channel, {}).setdefault(src, dst) != dst:
            wrong[f"channel {channel} goes from {src} to {nexts[channel][src]} and to {dst}"] = None
        elif before.setdefault((channel, dst), src) != src:
            wrong[f"channel {channel} goes to {dst} from {before[channel, dst]} and from {src}"] = None
    parents: dict[int, dict[int, int]] = {}
    for part in group:
        for channel, above in part.parents.items():
            parents.setdefault(channel, {})[part.rank] = above
    channels = max([part.channels for part in group] + [channel + 1 for channel in (*nexts, *parents)])
    return LoggedCommunicator(
        name,
        said or most + 1,
        max(part.nodes for part in group),
        version,
        {part.rank: part.host for part in group if part.rank >= 0},
        channels,
        nexts,
        parents,
        {way: how for part in group for way, how in part.ways.items()},
        {way: how for part in group for way, how in part.received.items()},
        tuple(wrong),
    )
