"""Kind ``goal``: a GOAL schedule (LogGOPSim, ATLAHS) as a workload: one program for each rank.

``calc`` becomes a computation of so many nanoseconds on the stream ``cpu0``, ``cpu1`` ..., one at a time on
each; one of 0 needs no stream. A send or receive runs beside anything: LogGOPSim's overhead o, which takes a
cpu's time, is not modelled, nor is a NIC's number. ``a requires b``: a waits for b's end. ``a irequires
b``: a waits for what b waits for. A send ends when its message has arrived (there: when it has left).

The grammar is that of LogGOPSim's ``txt2bin``; any-source and any-tag receives are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from pydantic import Field

from cosim.context import Context
from cosim.errors import Location, WorkloadError
from cosim.files.import_report import ReportBuilder
from cosim.files.text import MOST_RANKS, lines_of
from cosim.units import NEVER, PS_PER_NS
from cosim.workload.by_rank import rank_workload
from cosim.workload.check import check
from cosim.workload.contract import WorkloadSpec
from cosim.workload.program import (
    COMPUTE_STREAM,
    NO_STREAM,
    Operation,
    OpKind,
    Peer,
    Workload,
)

_LABEL = r"[A-Za-z][A-Za-z0-9_]*"
_OP = re.compile(
    rf"(?:(?P<label>{_LABEL})\s*:\s*)?(?:"
    r"(?P<kind>send|recv)\s+(?P<size>\d{1,40})\s*b\s+(?P<way>to|from)\s+(?P<peer>-1|\d{1,40})"
    r"(?:\s+tag\s+(?P<tag>-1|\d{1,40}))?(?:\s+cpu\s+(?P<cpu>\d{1,40}))?(?:\s+nic\s+(?P<nic>\d{1,40}))?"
    r"|calc\s+(?P<calc>\d{1,40})(?:\s+cpu\s+(?P<calc_cpu>\d{1,40}))?)"
)
_NEEDS = re.compile(rf"(?P<what>{_LABEL})\s+(?P<how>i?requires)\s+(?P<on>{_LABEL})")
_RANK = re.compile(r"rank\s+(\d{1,40})\s*\{")
_NUM_RANKS = re.compile(r"num_ranks\s+(\d{1,40})")

_RIGHT = "a line is `[label:] send 8b to 1 tag 0`, `recv 8b from 0 tag 0`, `calc 100`, or `a requires b`"


class GoalWorkload(WorkloadSpec):
    """A GOAL schedule (LogGOPSim, ATLAHS): sends, receives and calculations of each rank"""

    path: str = Field(description="the text file (not the binary one that txt2bin makes of it)")
    rendezvous: bool = Field(default=False, description="a receiver asks for each message first, with 8 KiB")

    def idle_in(self, workload: Workload) -> list[tuple[str, str]]:
        """A rendezvous of no messages."""
        sends = any(op.kind is OpKind.SEND for program in workload.programs for op in program.operations)
        return [("rendezvous", "there are no sends")] if self.rendezvous and not sends else []

    def build(self, context: Context) -> Workload:
        """Read the schedule; ``path`` is relative to ``context.base``.

        Raises
        ------
        WorkloadError, MismatchError, StallError
            A file that is missing or can't be meant; names file and line.
        """
        reader = _GoalReader(context.base / self.path)
        workload = reader.workload(self.rendezvous)
        check(workload)
        return workload


def cpu_stream(cpu: int) -> str:
    """The stream of a cpu: ``compute`` for the first."""
    return COMPUTE_STREAM if cpu == 0 else f"cpu{cpu}"


class _GoalReader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._report = ReportBuilder()
        self._num_ranks = -1
        self._ranks: dict[int, tuple[Operation, ...]] = {}
        self._line = 0

    def workload(self, rendezvous: bool) -> Workload:
        """The whole file."""
        lines = self._without_comments()
        for text in lines:
            if match := _NUM_RANKS.fullmatch(text):
                self._begin(int(match[1]))
            elif match := _RANK.fullmatch(text):
                self._rank(int(match[1]), lines)
            else:
                raise self._wrong(f"{_short(text)} can't stand here", "num_ranks N, then rank 0 { ... } ...")
        if self._num_ranks < 0:
            raise self._wrong("there is no num_ranks", "the file begins with `num_ranks 32`")
        operations = [self._ranks.get(rank, ()) for rank in range(self._num_ranks)]
        return rank_workload(self._path.stem, operations, self._report, rendezvous=rendezvous)

    def _without_comments(self) -> Iterator[str]:
        inside = False
        for number, text in lines_of(self._path):
            self._line = number
            text, inside = _strip(text, inside)
            if text:
                yield text
        if inside:
            raise self._wrong("a comment /* is not closed", "close it with */")

    def _begin(self, count: int) -> None:
        if self._num_ranks >= 0:
            raise self._wrong("num_ranks is there twice", "once, before the first rank")
        if not 1 <= count <= MOST_RANKS:
            raise self._wrong(f"num_ranks is {count}", f"1 to {MOST_RANKS} can be simulated")
        self._num_ranks = count

    def _rank(self, rank: int, lines: Iterator[str]) -> None:
        if self._num_ranks < 0:
            raise self._wrong("a rank before num_ranks", "the file begins with `num_ranks 32`")
        if rank >= self._num_ranks:
            raise self._wrong(f"rank {rank} of {self._num_ranks}", f"ranks are 0 to {self._num_ranks - 1}")
        if rank in self._ranks:
            raise self._wrong(f"rank {rank} is there twice", "one section for each rank")
        begun = self._line
        operations: list[Operation] = []
        waits: list[set[int]] = []
        starts: list[tuple[int, int]] = []
        label_of: dict[str, int] = {}
        for text in lines:
            if text == "}":
                self._ranks[rank] = self._with_deps(operations, waits, starts)
                return
            if match := _OP.fullmatch(text):
                label = match["label"]
                if label is not None and label_of.setdefault(label, len(operations)) != len(operations):
                    raise self._wrong(
                        f"label {label!r} is there twice in rank {rank}", "one for each operation"
                    )
                operations.append(self._operation(match, rank, label or f"op{len(operations)}"))
                waits.append(set())
            elif match := _NEEDS.fullmatch(text):
                unknown = [match[key] for key in ("what", "on") if match[key] not in label_of]
                if unknown:
                    raise self._wrong(
                        f"rank {rank} has no operation {unknown[0]!r} above",
                        "a label stands before it is used",
                    )
                what, on = label_of[match["what"]], label_of[match["on"]]
                if what == on:
                    raise self._wrong(f"{match['what']!r} waits for itself", "an earlier operation")
                # What `irequires` waits for may be said further below: it is put in when the rank is closed.
                if match["how"] == "requires":
                    waits[what].add(on)
                    self._report.read("requires")
                else:
                    starts.append((what, on))
                    self._report.read("irequires (waits for what the other waits for)")
            else:
                raise self._wrong(f"{_short(text)} is no operation", _RIGHT)
        raise self._wrong(f"rank {rank}, which begins in line {begun}, is not closed", "close it with }")

    def _operation(self, match: re.Match[str], rank: int, name: str) -> Operation:
        if match["calc"] is not None:
            self._report.read("calc")
            duration = int(match["calc"]) * PS_PER_NS
            if duration > NEVER:
                raise self._wrong(f"calc {match['calc']} is above 53 days", "nanoseconds")
            stream = cpu_stream(self._byte(match["calc_cpu"])) if duration else NO_STREAM
            return Operation(name, OpKind.COMPUTE, stream, duration_ps=duration)
        sends, peer, size = match["kind"] == "send", int(match["peer"]), int(match["size"])
        if sends != (match["way"] == "to"):
            raise self._wrong(f"{match['kind']} ... {match['way']}", "send to, recv from")
        if peer < 0 or match["tag"] == "-1":
            raise self._wrong("any source or any tag can't be simulated", "name the sender and the tag")
        if peer >= self._num_ranks or peer == rank:
            raise self._wrong(f"peer {peer} of rank {rank}", f"another of the {self._num_ranks} ranks")
        if size > NEVER:
            raise self._wrong(f"{size} bytes", f"at most {NEVER}")
        tag = int(match["tag"] or 0)
        if tag >= 1 << 32:
            raise self._wrong(f"tag {tag}", "tags have 32 bits")
        self._byte(match["cpu"])
        self._byte(match["nic"])
        self._report.read(match["kind"])
        for ignored in ("cpu", "nic"):
            if match[ignored]:
                self._report.ignored(f"{ignored} of a {match['kind']}")
        kind = OpKind.SEND if sends else OpKind.RECV
        return Operation(name, kind, NO_STREAM, size_bytes=size, peer=Peer(rank=peer), tag=tag)

    def _byte(self, text: str | None) -> int:
        value = int(text or 0)
        if value > 255:
            raise self._wrong(f"{value} is no cpu or nic", "0 to 255")
        return value

    def _with_deps(
        self, operations: list[Operation], waits: list[set[int]], starts: list[tuple[int, int]]
    ) -> tuple[Operation, ...]:
        """A rank's operations; ``starts``: (what, on) where what begins when on does."""
        begins_with: dict[int, set[int]] = {}
        for what, on in starts:
            begins_with.setdefault(what, set()).add(on)
        try:
            # Whoever begins with others comes after them, wherever its line stands.
            for what in TopologicalSorter(begins_with).static_order():
                for on in begins_with.get(what, ()):
                    waits[what] |= waits[on]
        except CycleError as error:
            names = ", ".join(operations[one].name for one in error.args[1])
            raise self._wrong(f"operations that begin with each other: {names}", "no such circle") from None
        return tuple(
            replace(operation, deps=tuple(sorted(before))) if before else operation
            for operation, before in zip(operations, waits, strict=True)
        )

    def _wrong(self, message: str, right: str) -> WorkloadError:
        return WorkloadError(message, location=Location(str(self._path), self._line or None), hint=right)


def _strip(text: str, inside: bool) -> tuple[str, bool]:
    """A line without comments and blanks around; whether it ends inside of one."""
    kept = ""
    while text:
        if inside:
            _, closed, text = text.partition("*/")
            inside = not closed
            continue
        block, line = text.find("/*"), text.find("//")
        if line >= 0 and (block < 0 or line < block):
            return (kept + text[:line]).strip(), False
        if block < 0:
            return (kept + text).strip(), False
        kept, text, inside = kept + text[:block], text[block + 2 :], True
    return kept.strip(), inside


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
