"""What PyTorch's ``record_param_comms`` says of a communication: kind, bytes, group, whom it waits for.

ET nodes of schema 1.0 say it by position (tensors, sequence number, group, ..., name, splits), those of 1.1
also by attributes, newer Kineto events by arguments. Bytes are as ``Collective`` counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cosim.errors import Location, WorkloadError

RECORD = "record_param_comms"
_KINDS = {
    "allreduce": "all_reduce",
    "all_reduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "allgather": "all_gather",
    "all_gather": "all_gather",
    "_allgather_base": "all_gather",
    "all_gather_into_tensor_coalesced": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
    "alltoall": "all_to_all",
    "alltoall_base": "all_to_all",
    "broadcast": "broadcast",
    "_broadcast_oop": "broadcast",
    "barrier": "barrier",
    "send": "send",
    "recv": "recv",
}
MESSAGES = frozenset({"send", "recv"})
SILENT = frozenset({"init", "end", "start_coalescing", "end_coalescing", "group_start", "group_end"})
_WIDTH = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "long": 8, "long int": 8, "int": 4, "short": 2,
    "char": 1, "signed char": 1, "byte": 1, "unsigned char": 1, "bool": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecordedComm:
    """One ``record_param_comms``. ``kind`` is a collective's, ``send``, ``recv`` or ``wait``.

    ``ranks`` is the group where the trace says it; "" as ``group`` stands for no name. ``splits`` are bytes
    for each member of the group, where they differ; ``sequence`` is what a ``wait`` names again; ``peer``
    is a place in the group.
    """

    place: Location
    kind: str
    size_bytes: int
    sequence: int
    group: str
    ranks: tuple[int, ...] | None = None
    group_size: int = 0
    splits: tuple[int, ...] | None = None
    root: int = 0
    peer: int | None = None


def from_node(
    values: Sequence[Any], outputs: Sequence[Any], attributes: Mapping[str, Any], place: Location
) -> RecordedComm:
    """A communication from an ET node's inputs, outputs and attributes.

    Raises
    ------
    WorkloadError
        A name that isn't known, or a size that isn't there.
    """
    at = next((number for number, value in enumerate(values) if isinstance(value, str)), None)
    if at is None:
        raise WorkloadError("names no collective among its inputs", location=place)
    name = str(values[at])
    numbers = [value for value in values[:at] if type(value) is int]
    sequence = numbers[0] if numbers else -1
    group = _group(values, numbers, attributes)
    if name == "wait" or name in SILENT:
        return RecordedComm(place, name, 0, sequence, group)
    kind = known_kind(name, place)
    before = sum(size for value in values[:at] for _, size in tensors(value))
    after = sum(size for value in outputs for _, size in tensors(value))
    splits = None
    lists = [value for value in values[at + 1 :] if isinstance(value, list)]
    if kind == "all_to_all" and len(lists) >= 2 and lists[0]:
        splits = _splits(lists[0], before, place)
    ranks, size = _strided(values[at + 1 :])
    size = _whole(attributes.get("pg_size"), size)
    return RecordedComm(place, kind, _size(kind, before, after, size), sequence, group, ranks, size, splits)


def from_arguments(arguments: Mapping[str, Any], place: Location) -> RecordedComm | None:
    """A communication from a Kineto event's arguments; None from a PyTorch that didn't write them.

    Raises
    ------
    WorkloadError
        As :func:`from_node`.
    """
    name = arguments.get("Collective name")
    if not isinstance(name, str) or not name:
        return None
    sequence = _whole(arguments.get("Seq"), -1)
    group = str(arguments.get("Process Group Name", ""))
    if name == "wait" or name in SILENT:
        return RecordedComm(place, name, 0, sequence, group)
    kind = known_kind(name, place)
    dtype = str(arguments.get("dtype", "")).lower()
    if dtype not in _WIDTH:
        raise WorkloadError(
            f"dtype is {dtype[:40]!r}", location=place, hint=f"known are: {', '.join(_WIDTH)}"
        )
    width, size = _WIDTH[dtype], _whole(arguments.get("Group size"), 0)
    before, after = (width * _whole(arguments.get(f"{way} msg nelems"), 0) for way in ("In", "Out"))
    listed = _numbers(arguments.get("In split size"))
    splits = tuple(width * count for count in listed) if kind == "all_to_all" and listed else None
    ranks = _numbers(arguments.get("Process Group Ranks")) or None
    peer = arguments.get("Dst Rank" if kind == "send" else "Src Rank")
    return RecordedComm(
        place, kind, _size(kind, before, after, size), sequence, group, ranks, size, _uneven(splits), 0,
        peer if type(peer) is int else None,
    )  # fmt: skip


def known_kind(name: str, place: Location) -> str:
    """The name of a collective as cosim has it.

    Raises
    ------
    WorkloadError
        There is none.
    """
    if name not in _KINDS:
        raise WorkloadError(
            f"the communication {name[:40]!r} can't be simulated",
            location=place,
            hint=f"there are: {', '.join(_KINDS)}",
        )
    return _KINDS[name]


def tensors(value: Any) -> list[tuple[int, int]]:
    """(storage, bytes) of each tensor in it: ``[id, storage, offset, elements, width, device]``."""
    if not isinstance(value, list):
        return []
    if len(value) == 6 and isinstance(value[5], str) and all(type(part) is int for part in value[:5]):
        size = value[3] * value[4]
        return [(value[1], size)] if 0 <= size < 1 << 50 else []
    return [found for part in value[:100_000] if isinstance(part, list) for found in tensors(part)]


def _size(kind: str, before: int, after: int, group_size: int) -> int:
    """all-gather: a rank's input; the others: a rank's buffer."""
    if kind == "all_gather":
        return before or (after // group_size if group_size else after)
    return after if kind == "recv" else before or after


def _group(values: Sequence[Any], numbers: list[int], attributes: Mapping[str, Any]) -> str:
    """1.1: a pair (name, description); 1.0: an address, which differs from rank to rank."""
    if isinstance(attributes.get("pg_name"), str):
        return str(attributes["pg_name"])
    pair = next(
        (v for v in values if isinstance(v, list) and len(v) == 2 and all(isinstance(p, str) for p in v)),
        None,
    )
    if pair is not None:
        return str(pair[0])
    return f"address {numbers[1]}" if len(numbers) > 1 else ""


def _strided(values: Sequence[Any]) -> tuple[tuple[int, ...] | None, int]:
    """The group as first rank, stride and size, as 1.1 ends; stride 0: not said."""
    numbers = [value for value in values if type(value) is int]
    if len(numbers) < 3:
        return None, 0
    first, stride, size = numbers[-3:]
    if first < 0 or stride < 1 or not 1 <= size <= 1 << 24:
        return None, max(size, 0)
    return tuple(range(first, first + stride * size, stride)), size


def _splits(listed: list[Any], total: int, place: Location) -> tuple[int, ...] | None:
    if not all(type(count) is int and count >= 0 for count in listed):
        raise WorkloadError(
            f"splits are {str(listed)[:80]}", location=place, hint="they should be whole numbers"
        )
    rows = sum(listed)
    if rows == 0 or total % rows:
        if total == 0:
            return tuple(0 for _ in listed)
        raise WorkloadError(f"splits add up to {rows}, but the buffer has {total} bytes", location=place)
    return _uneven(tuple(count * (total // rows) for count in listed))


def _uneven(splits: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return splits if splits and len(set(splits)) > 1 else None


def _whole(value: Any, otherwise: int) -> int:
    return value if type(value) is int and 0 <= value < 1 << 50 else otherwise


def _numbers(value: Any) -> tuple[int, ...]:
    """``"[0, 1, 2]"`` or a list."""
    if isinstance(value, str):
        value = [part.strip() for part in value.strip("[] ").split(",")]
        value = [int(part) for part in value if part.isdecimal() and len(part) < 16]
    if not isinstance(value, list) or not all(type(part) is int for part in value):
        return ()
    return tuple(value)
