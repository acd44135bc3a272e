"""The injection log: what a session was given and answered, on disk as it grows.

A file of records, only ever appended to: length (u32), CRC-32 of what follows (u32), kind (u8), content. A
record is handed to the operating system as one write, before the request goes out and after the answer came
in: it survives the death of this process at any moment. :meth:`LogWriter.sync` (at the start, every
``sync_every_s`` and at the end) also has the disk write it, so that a power cut costs at most that much. What
a death cut short at the end is noticed by its length or its CRC, and dropped.

An *exchange* is the requests of one advance and the parts of its answer; with what the network was looked at
for before it, which changes nothing there, so that a replay leaves it out. Requests are kept without their
sequence numbers, which belong to one stream; a log goes on over several.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import BinaryIO

from cosim.errors import InputError, Location

_HEAD = struct.Struct("<IIB")
_MAGIC = b"cosim injection log 1\n"
_LONGEST = 1 << 30  # bytes of a record: far above any message that both sides take


class RecordKind(IntEnum):
    """What a record holds, serialized."""

    DESCRIBED = 1
    OPEN = 2
    REQUEST = 3
    ANSWER = 4
    SAMPLE = 5


@dataclass(frozen=True, slots=True)
class LoggedAdvance:
    """The requests of one advance, the parts of its answer, where its records end in the file, and the
    answers to what was looked at before it.
    """

    requests: tuple[bytes, ...]
    answers: tuple[bytes, ...]
    end: int
    samples: tuple[bytes, ...] = ()


def frame(kind: int, content: bytes) -> bytes:
    """One record."""
    return _HEAD.pack(len(content), zlib.crc32(content, kind), kind) + content


def frames(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """(Kind, content, end) of each whole record from here on; stops at the first that is not."""
    at = file.tell()
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, crc, kind = _HEAD.unpack(head)
        # Where a record broke off, its length may be any number: nothing is read by it.
        if length > _LONGEST:
            return
        content = file.read(length)
        if len(content) < length or zlib.crc32(content, kind) != crc:
            return
        at += _HEAD.size + length
        yield kind, content, at


class LogWriter:
    """A log being written. Start one with :meth:`create`, go on with one with :meth:`resume`."""

    def __init__(self, path: Path, file: BinaryIO, sync_every_s: float) -> None:
        self.path = path
        self._file = file
        self._fd = file.fileno()
        self._every = sync_every_s
        self._synced = time.monotonic()

    @classmethod
    def create(cls, path: Path, described: bytes, opened: bytes, sync_every_s: float = 5.0) -> LogWriter:
        """A new log of a session; one that is there is replaced.

        Raises
        ------
        InputError
            It can't be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = cls(path, path.open("wb", buffering=0), sync_every_s)
        except OSError as error:
            raise InputError(f"can't write the log: {error}", location=Location(str(path))) from error
        writer._write(_MAGIC + frame(RecordKind.DESCRIBED, described) + frame(RecordKind.OPEN, opened))
        writer.sync()
        return writer

    @classmethod
    def resume(cls, path: Path, end: int, sync_every_s: float = 5.0) -> LogWriter:
        """Go on with a log after its last whole exchange; what follows that is dropped."""
        file = path.open("r+b", buffering=0)
        file.truncate(end)
        file.seek(end)
        return cls(path, file, sync_every_s)

    def write(self, kind: RecordKind, parts: Sequence[bytes]) -> None:
        """Append records of one kind."""
        self._write(frame(kind, parts[0]) if len(parts) == 1 else b"".join(frame(kind, p) for p in parts))
        if time.monotonic() - self._synced > self._every:
            self.sync()

    def _write(self, data: bytes) -> None:
        try:
            # One call, without a buffer: after a kill the log ends within one record, which is then dropped.
            done = os.write(self._fd, data)
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError as error:
            raise InputError(f"can't write the log: {error}", location=Location(str(self.path))) from error

    def sync(self) -> None:
        """Have the disk write it."""
        os.fsync(self._fd)
        self._synced = time.monotonic()

    def close(self, *, remove: bool = False) -> None:
        """Stop writing; may be called twice."""
        if not self._file.closed:
            if not remove:
                self.sync()
            self._file.close()
        if remove:
            self.path.unlink(missing_ok=True)


class LogReader:
    """A log to read: ``described`` and ``opened``, serialized, and its exchanges."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                good = file.read(len(_MAGIC)) == _MAGIC
                head = []
                for kind, content, end in frames(file):
                    head.append((kind, content))
                    self._begin = end
                    if len(head) == 2:
                        break
        except OSError as error:
            raise InputError(f"can't read the log: {error}", location=Location(str(path))) from error
        if not good or [kind for kind, _ in head] != [RecordKind.DESCRIBED, RecordKind.OPEN]:
            raise InputError("not the injection log of a session", location=Location(str(path)))
        self.described, self.opened = (content for _, content in head)
        self.end = self._begin

    def exchanges(self) -> Iterator[LoggedAdvance]:
        """Every whole exchange, in order; ``end`` is where the last one read ends."""
        requests: list[bytes] = []
        answers: list[bytes] = []
        samples: list[bytes] = []
        self.end = self._begin
        with self.path.open("rb") as file:
            file.seek(self._begin)
            for kind, content, end in frames(file):
                if kind == RecordKind.REQUEST:
                    if answers:  # an answer that broke off: its advance was sent again
                        requests, answers = [], []
                    requests.append(content)
                elif kind == RecordKind.ANSWER:
                    answers.append(content)
                    if not _has_more(content):
                        self.end = end
                        yield LoggedAdvance(tuple(requests), tuple(answers), end, tuple(samples))
                        requests, answers, samples = [], [], []
                elif kind == RecordKind.SAMPLE:
                    samples.append(content)


def _has_more(answer: bytes) -> bool:
    from cosim.protocol.v1 import network_simulator_pb2 as pb

    return bool(pb.SessionResponse.FromString(answer).advanced.more)
