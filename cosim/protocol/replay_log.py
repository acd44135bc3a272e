"""The injection log: what a session was given and answered, on disk as it grows.

A file of records, only ever appended to: length (u32), CRC-32 of what follows (u32), kind (u8), content.
After what the server said of itself and how it was opened, each record is a *block* of whole exchanges. It is
written when they have :data:`BLOCK_BYTES`, or after ``sync_every_s``, in one write. A process that dies so
loses the last exchanges, and what a death cut short is noticed by its length or its CRC, and dropped. Neither
matters: a simulator whose run can go on is deterministic, and answers the same when it is asked again.

An *exchange* is the requests of one advance and the parts of its answer; with what the network was looked at
for before it, which changes nothing there, so that a replay leaves it out. Requests are kept without their
sequence numbers, which belong to one stream; a log goes on over several. Of a block's answers only the last
has its digest, and none how long it took.

Exchanges of a loop are alike: messages of one length differ from the one before in a few bytes. A block has
those differences, byte by byte of all messages of one length, which zlib makes 0.1 to 40 bytes an exchange.
A log takes :data:`MOST_BYTES` at most. Then, or where the disk is full, it ends: its beginning stays good to
go on from, and only a server that dies can't be replaced any more.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.errors import InputError, Location
from cosim.protocol.advance_answer import AdvanceAnswer
from cosim.protocol.v1 import network_simulator_pb2 as pb

_HEAD = struct.Struct("<IIB")
_MAGIC = b"cosim injection log 2\n"
_LONGEST = 1 << 30  # bytes of a record, and of a block unpacked: far above any message that both sides take
BLOCK_BYTES = 1 << 20
"""Bytes of exchanges in memory, before they become a block."""
MOST_BYTES = 1 << 30
"""The most bytes of a log: some hundred million messages of a loop."""


class RecordKind(IntEnum):
    """What a record holds, serialized."""

    DESCRIBED = 1
    OPEN = 2
    BLOCK = 3


class LoggedAdvance(NamedTuple):
    """The requests of one advance, the parts of its answer, and the answers to what was looked at before it.
    ``end`` is where its block ends in the file.
    """

    requests: tuple[bytes, ...]
    answers: tuple[bytes, ...]
    samples: tuple[bytes, ...] = ()
    end: int = 0


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


Exchange = tuple[tuple[bytes, ...], tuple[bytes, ...], tuple[bytes, ...]]
"""The first three of :class:`LoggedAdvance`. The garbage collector doesn't look at plain tuples of bytes, of
which there are thousands.
"""


def pack(exchanges: Sequence[Exchange | LoggedAdvance]) -> bytes:
    """A block's content."""
    columns = [np.array([len(exchanges)], np.uint32).tobytes()]
    fields: Any = [one[:3] for one in exchanges]
    for lists in zip(*fields, strict=True) if fields else ((), (), ()):
        alike: dict[int, list[bytes]] = {}
        for message in chain.from_iterable(lists):
            alike.setdefault(len(message), []).append(message)
        lengths = [len(message) for message in chain.from_iterable(lists)]
        columns += [np.array(one, np.uint32).tobytes() for one in ([len(one) for one in lists], lengths)]
        for length, messages in sorted(alike.items()):
            rows = np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), length)
            columns.append(np.diff(rows, axis=0, prepend=np.zeros((1, length), np.uint8)).T.tobytes())
    return zlib.compress(b"".join(columns))


def unpack(content: bytes, end: int) -> list[LoggedAdvance]:
    """The exchanges of a block that ends there in its file.

    Raises
    ------
    ValueError, zlib.error
        It isn't a block's content.
    """
    whole, at = zlib.decompressobj().decompress(content, _LONGEST), 0

    def take(count: int, kind: type[np.generic]) -> NDArray[Any]:
        nonlocal at
        found = np.frombuffer(whole, kind, count, at)
        at += found.nbytes
        return found

    (count,) = take(1, np.uint32).tolist()
    fields = []
    for _ in range(3):
        counts = take(count, np.uint32)
        lengths = take(int(counts.sum()), np.uint32)
        messages = [b""] * len(lengths)
        for length in np.unique(lengths).tolist():
            mine = np.flatnonzero(lengths == length).tolist()
            changes = take(len(mine) * length, np.uint8).reshape(length, len(mine))
            rows = np.cumsum(changes, axis=1, dtype=np.uint8).T.tobytes()
            for row, place in enumerate(mine):
                messages[place] = rows[row * length : (row + 1) * length]
        ends = np.cumsum(counts).tolist()
        fields.append([tuple(messages[low:high]) for low, high in zip([0, *ends], ends, strict=False)])
    requests, answers, samples = fields
    return [LoggedAdvance(*one, end) for one in zip(requests, answers, samples, strict=True)]


class LogWriter:
    """A log being written. Start one with :meth:`create`, go on with one with :meth:`resume`.

    ``ended``: why no more is written, or nothing.
    """

    def __init__(self, path: Path, file: BinaryIO, sync_every_s: float) -> None:
        self.path = path
        self.ended = ""
        self._file = file
        self._every = sync_every_s
        self._synced = time.monotonic()
        self._kept: list[Exchange] = []
        self._samples: list[bytes] = []
        self._bytes = 0
        self._last = b""

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
            head = _MAGIC + frame(RecordKind.DESCRIBED, described) + frame(RecordKind.OPEN, opened)
            writer._write(head)
            os.fsync(writer._file.fileno())
        except OSError as error:
            raise InputError(f"can't write the log: {error}", location=Location(str(path))) from error
        return writer

    @classmethod
    def resume(cls, path: Path, end: int, sync_every_s: float = 5.0) -> LogWriter:
        """Go on with a log after its last whole block; what follows that is dropped."""
        file = path.open("r+b", buffering=0)
        file.truncate(end)
        file.seek(end)
        return cls(path, file, sync_every_s)

    def advance(self, requests: Sequence[bytes], answer: AdvanceAnswer) -> None:
        """Keep an exchange."""
        if self.ended:
            return
        kept = tuple(requests), tuple(answer.stripped), tuple(self._samples)
        self._kept.append(kept)
        self._last = answer.parts[-1]
        self._bytes += sum(map(len, chain.from_iterable(kept)))
        self._samples.clear()
        if self._bytes >= BLOCK_BYTES or time.monotonic() - self._synced > self._every:
            self.flush()

    def sample(self, answer: bytes) -> None:
        """Keep what the network was looked at for before the next exchange."""
        self._samples.append(answer)

    def flush(self) -> None:
        """Make a block of what is kept; where that can't be written, or is too much, the log ends."""
        if self.ended or not self._kept:
            return
        requests, answers, samples = self._kept.pop()
        said = pb.SessionResponse.FromString(self._last).advanced
        if said.HasField("digest"):  # messages that are put one after the other are merged
            digest = pb.SessionResponse(advanced=pb.Advanced(digest=said.digest)).SerializeToString()
            answers = *answers[:-1], answers[-1] + digest
        content = frame(RecordKind.BLOCK, pack([*self._kept, (requests, answers, samples)]))
        self._kept, self._bytes = [], 0
        before = self._file.tell()
        try:
            if before + len(content) > MOST_BYTES:
                raise OSError(f"it holds {MOST_BYTES >> 20} MiB")
            self._write(content)
            if time.monotonic() - self._synced > self._every:
                self.sync()
        except OSError as error:
            self.ended = f"its log {self.path} has ended: {error.strerror or error}"
            with suppress(OSError):
                self._file.truncate(before)

    def _write(self, data: bytes) -> None:
        # One call, without a buffer: after a kill the log ends within one record, which is then dropped.
        done = 0
        while done < len(data):
            done += self._file.write(data[done:]) or 0

    def sync(self) -> None:
        """Have the disk write it."""
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def close(self, *, remove: bool = False) -> None:
        """Stop writing; may be called twice."""
        if not self._file.closed:
            if not remove:
                self.flush()
                with suppress(OSError):
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
            raise InputError(
                "not the injection log of a session, or one of another version of cosim",
                location=Location(str(path)),
            )
        self.described, self.opened = (content for _, content in head)
        self.end = self._begin

    def exchanges(self) -> Iterator[LoggedAdvance]:
        """Every exchange of every whole block, in order; ``end`` is where the last one read ends."""
        self.end = self._begin
        with self.path.open("rb") as file:
            file.seek(self._begin)
            for _, content, end in frames(file):
                try:
                    found = unpack(content, end)
                except (ValueError, zlib.error):
                    return
                self.end = end
                yield from found
