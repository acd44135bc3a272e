"""Reads .et files: a varint length before each message, one GlobalMetadata first, then Nodes; and JSON.

Follows Chakra's FeederV3 (``protobuf_util.h``): lengths are varints of at most 32 bits. What the feeder takes
in silence is an error here: a file that ends inside a message, a file without nodes, bytes that aren't a
trace. A file cut exactly between two nodes can't be told from a shorter trace, unless a dependency dangles.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError, Message

from cosim.errors import Location, WorkloadError
from cosim.formats.chakra.et_def_pb2 import GlobalMetadata, Node
from cosim.formats.chakra.json_file import iter_json_nodes

_MAX_LENGTH_BYTES = 5


def framed(message: Message) -> bytes:
    """``message`` as it stands in a file: varint length, then its bytes."""
    body = message.SerializeToString()
    length, head = len(body), bytearray()
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + body


def read_trace(path: Path) -> tuple[GlobalMetadata, list[Node]]:
    """Metadata and all nodes, in file order.

    Raises
    ------
    WorkloadError
        As :func:`iter_nodes`; also a file without nodes.
    """
    metadata = GlobalMetadata()
    nodes = list(iter_nodes(path, metadata))
    return metadata, nodes


def iter_nodes(path: Path, metadata: GlobalMetadata | None = None) -> Iterator[Node]:
    """Nodes in file order, one at a time; ``metadata``, where given, is filled in before the first.

    Raises
    ------
    WorkloadError
        The file can't be read, is empty, ends inside a message, or holds something else than a trace; says
        which message and at which byte.
    """
    if path.suffix == ".json":
        count = 0
        for node in iter_json_nodes(path, GlobalMetadata() if metadata is None else metadata):
            count += 1
            yield node
        if count == 0:
            raise WorkloadError("the trace has no nodes", location=Location(str(path)))
        return
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            body = _next(file, path, size, "the metadata")
            if body is None:
                raise WorkloadError(
                    "the file is empty", location=Location(str(path)), hint="a trace has metadata and nodes"
                )
            _parse(GlobalMetadata() if metadata is None else metadata, body, path, file, "the metadata")
            count = 0
            while (body := _next(file, path, size, f"node {count} of the file")) is not None:
                node = Node()
                _parse(node, body, path, file, f"node {count} of the file")
                count += 1
                yield node
    except OSError as error:
        raise WorkloadError(
            f"can't be read: {error.strerror or error}", location=Location(str(path))
        ) from None
    if count == 0:
        raise WorkloadError("the trace has no nodes, only metadata", location=Location(str(path)))


def _next(file: BinaryIO, path: Path, size: int, what: str) -> bytes | None:
    """Bytes of the next message; None at the end of the file."""
    start = file.tell()
    length = shift = 0
    while True:
        byte = file.read(1)
        if not byte:
            if shift == 0:
                return None
            raise _broken(path, start, f"the file ends inside the length of {what}")
        length |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            break
        if shift >= 7 * _MAX_LENGTH_BYTES:
            raise _broken(path, start, f"where the length of {what} should be, there is no length")
    left = size - file.tell()
    if length > left:
        raise _broken(
            path, start, f"{what} should have {length} bytes, but the file ends after {max(left, 0)} of them"
        )
    body = file.read(length)
    if len(body) < length:  # the file shrank while it was read
        raise _broken(path, start, f"{what} should have {length} bytes, but the file ends before")
    return body


def _parse(message: Message, body: bytes, path: Path, file: BinaryIO, what: str) -> None:
    try:
        message.ParseFromString(body)
    except (DecodeError, ValueError):  # ValueError: a text that isn't UTF-8, in the pure Python runtime
        name = type(message).__name__
        raise _broken(
            path, file.tell() - len(body), f"{what} ({len(body)} bytes) is not a Chakra {name}"
        ) from None


def _broken(path: Path, offset: int, message: str) -> WorkloadError:
    return WorkloadError(
        f"byte {offset}: {message}",
        location=Location(str(path)),
        hint="is it a Chakra .et file (protobuf, not compressed; JSON is named .json), and complete?",
    )
