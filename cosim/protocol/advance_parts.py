"""Advances as messages that fit: flows, paths and starts are split over parts where they must be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cosim.errors import OverloadError
from cosim.kernel import Columns, kernel
from cosim.network.flows import I32, I64
from cosim.protocol.flat_flows import DEFAULTS, FlatFlows, batches
from cosim.protocol.v1 import network_simulator_pb2 as pb

_ROOM = 64
"""For what a message holds besides, bytes."""
_ORDER = ("changes", "paths", "flows", "starts")
"""In which a server takes what a message holds."""
_FLOWS = _ORDER.index("flows")
_NUMBER = pb.SessionRequest()


class AdvanceRequest(Columns):
    """What an advance brings, in the kernel, which writes its messages."""

    @classmethod
    def of(cls, flows: FlatFlows) -> AdvanceRequest:
        """Flows."""
        made = cls(first_id=flows.first_id, count=flows.count)
        rows = made.lengthen("flows", flows.count)[: flows.count]
        for name in DEFAULTS:
            rows[name] = flows.columns[name]
        if flows.has_dependencies:
            made.wait(flows.dependency_ptr, flows.dependency_id, flows.dependency_kind)
        return made

    def wait(self, *dependencies: Any) -> None:
        """Have flows wait for others: ``dependency_ptr``, ``dependency_id`` and ``dependency_kind`` of
        :class:`~cosim.protocol.flat_flows.FlatFlows`.
        """
        names = "dependency_ptr", "dependency_id", "dependency_kind"
        self.put(**dict(zip(names, map(np.ascontiguousarray, dependencies), strict=True)))

    def write(
        self,
        low: int,
        high: int,
        horizon_ps: int = 0,
        budget_us: int = 0,
        oldest_id: int = 0,
        *,
        more: bool = False,
    ) -> bytes:
        """A serialized ``SessionRequest`` of an advance with flows ``low`` to ``high`` - 1."""
        size = kernel.write_advance(self, low, high, more, horizon_ps, budget_us, oldest_id)
        written: bytes = self.bytes[:size].tobytes()
        return written


def numbered(body: bytes, sequence: int) -> bytes:
    """An advance's bytes with its sequence number: messages that are put one after the other are merged."""
    _NUMBER.advance.sequence = sequence
    return body + _NUMBER.SerializeToString()


def encode(flows: FlatFlows, into: pb.Flows) -> None:
    """Write flows into a message."""
    into.MergeFrom(pb.SessionRequest.FromString(AdvanceRequest.of(flows).write(0, flows.count)).advance.flows)


def advance_parts(
    paths: pb.Paths | None,
    flows: FlatFlows | AdvanceRequest | None,
    starts: tuple[I64, I64, I64] | None,
    horizon_ps: int,
    wall_budget_us: int,
    most_bytes: int,
    *,
    oldest_id: int = 0,
    changes: pb.Changes | None = None,
) -> list[bytes]:
    """Serialized ``SessionRequest`` of one advance, without sequence numbers; all but the last say ``more``.

    ``oldest_id``: no flow of a later advance waits for one of a lower id. ``changes`` come before all else.

    Raises
    ------
    OverloadError
        A single flow doesn't fit a message.
    """
    request = AdvanceRequest.of(flows) if isinstance(flows, FlatFlows) else flows or AdvanceRequest()
    scalars = horizon_ps, wall_budget_us, oldest_id
    has_starts = starts is not None and len(starts[0])
    if changes is None and paths is None and not has_starts:
        whole = request.write(0, request.count, *scalars)
        if len(whole) + _ROOM <= most_bytes:
            return [whole]
    sections: list[tuple[int, int, Any]] = []
    if changes is not None:
        sections.append(_section(0, pb.Advance(changes=changes)))
    if paths is not None:
        sections += [_section(1, pb.Advance(paths=part)) for part in _paths(paths, most_bytes)]
    if request.count:
        sections += _flows(request, 0, request.count, most_bytes)
    if starts is not None and has_starts:
        sections += [_section(3, pb.Advance(starts=part)) for part in _starts(starts, most_bytes)]
    # One message for all of it, where that fits.
    messages: list[dict[int, Any]] = [{}]
    used = 0
    for place, size, what in sections:
        if messages[-1] and (used + size + _ROOM > most_bytes or place <= max(messages[-1])):
            messages.append({})
            used = 0
        messages[-1][place] = what
        used += size
    *first, last = messages
    return [*(_message(request, one, more=True) for one in first), _message(request, last, *scalars)]


def _section(place: int, field: pb.Advance) -> tuple[int, int, Any]:
    """A field's place in :data:`_ORDER`, its bytes, and what it is on the wire."""
    raw = field.SerializeToString()
    return place, len(raw), np.frombuffer(raw, np.int8)


def _message(request: AdvanceRequest, held: dict[int, Any], *scalars: int, more: bool = False) -> bytes:
    """A message of flows (low, high), and of other fields as they are on the wire."""
    others = {_ORDER[place]: what for place, what in held.items() if place != _FLOWS}
    request.put(**others)
    written = request.write(*held.get(_FLOWS, (0, 0)), *scalars, more=more)
    request.put(**dict.fromkeys(others, np.empty(0, np.int8)))
    return written


def _flows(request: AdvanceRequest, low: int, high: int, most_bytes: int) -> Iterator[tuple[int, int, Any]]:
    """Flows in runs that fit, halved where they don't."""
    size = int(kernel.size_flows(request, low, high))
    if size + _ROOM <= most_bytes:
        yield _FLOWS, size, (low, high)
        return
    if high - low == 1:
        raise OverloadError(f"a flow of {size} bytes does not fit messages of {most_bytes}")
    half = (low + high) // 2
    yield from _flows(request, low, half, most_bytes)
    yield from _flows(request, half, high, most_bytes)


def _starts(starts: tuple[I64, I64, I64], most_bytes: int) -> Iterator[pb.Starts]:
    ids, start, cause = starts
    for low, high in batches(len(ids), max(1, (most_bytes - _ROOM) // 24)):
        part = pb.Starts()
        _put(part.id, ids[low:high])
        _put(part.start_ps, start[low:high])
        if not np.array_equal(start[low:high], cause[low:high]):
            _put(part.cause_ps, cause[low:high])
        yield part


def _put(field: Any, values: Any) -> None:
    field.extend(values.tolist())


def make_paths(triples: Sequence[tuple[int, int, int]], ptr: I64, links: I32) -> pb.Paths:
    """Links of triples, in CSR form."""
    message = pb.Paths()
    columns = np.array(triples, np.int64).reshape(-1, 3)
    for field, values in zip(
        (message.src, message.dst, message.channel, message.end, message.link),
        (columns[:, 0], columns[:, 1], columns[:, 2], ptr[1:], links),
        strict=True,
    ):
        _put(field, values)
    return message


def _paths(paths: pb.Paths, most_bytes: int) -> Iterator[pb.Paths]:
    if paths.ByteSize() + _ROOM <= most_bytes:
        yield paths
        return
    count = len(paths.end)
    if count == 1:
        raise OverloadError(f"a path of {paths.ByteSize()} bytes does not fit messages of {most_bytes}")
    half = count // 2
    for low, high in ((0, half), (half, count)):
        part = pb.Paths(src=paths.src[low:high], dst=paths.dst[low:high], channel=paths.channel[low:high])
        before = paths.end[low - 1] if low else 0
        part.end.extend(end - before for end in paths.end[low:high])
        part.link.extend(paths.link[before : paths.end[high - 1]])
        part.dead_set.extend(paths.dead_set[low:high])
        yield from _paths(part, most_bytes)
