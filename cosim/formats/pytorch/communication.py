"""What PyTorch's ``record_param_comms`` says of a communication: kind, bytes, group, whom it waits for.

ET nodes of schema 1.0 say it by position (tensors, sequence number, group, ..., name, splits), those of 1.1
also by attributes, newer Kineto events by arguments. Bytes are as ``Collective`` counts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cosim.errors import Location, WorkloadError
from cosim.formats.pytorch.libraries import CommunicationLibrary, TracedOperator

RECORD = "record_param_comms"
_KINDS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherv": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "barrier": "barrier",
    "monitoredbarrier": "barrier",
    "send": "send",
    "isend": "send",
    "recv": "recv",
    "irecv": "recv",
    "recvanysource": "recv",
}
"""Names without the words of :data:`_FORMS`."""
_FORMS = re.compile(
    r"^(c10d::|nccl|rccl|xccl|hccl|gloo)|coalesced|base|oop|into|tensors?|out|single|sparse|withbias|pivot"
)
"""What PyTorch's and RCCL's names add for the form of their buffers, as in ``_allgather_base``."""
ROOTED = frozenset({"gather", "scatter"})
"""Carried as messages to or from the root, as PyTorch does over NCCL."""
MESSAGES = frozenset({"send", "recv"})
SILENT = frozenset({"init", "end", "start_coalescing", "end_coalescing", "group_start", "group_end"})
FLOAT8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
_OF_WIDTH = {
    1: "byte char bool uint8 int8 signedchar unsignedchar qint8 quint8 quint4x2 quint2x4"
    " bits1x8 bits2x4 bits4x2 bits8 float8 fp8 float4_e2m1fn_x2"
    " uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7",
    2: "half bfloat16 short float16 fp16 bf16 int16 uint16 unsignedshort bits16",
    4: "float int float32 fp32 int32 uint32 unsignedint complexhalf qint32",
    8: "double long float64 fp64 int64 uint64 longint unsignedlong complexfloat",
    16: "complexdouble",
}
_WIDTH = {name: width for width, names in _OF_WIDTH.items() for name in names.split()}
_WIDTH.update({f"float8_{kind}": 1 for kind in FLOAT8})
"""Bytes of each of c10's scalar types, and what ROCm and C++ call them."""


@dataclass(frozen=True, slots=True)
class RecordedComm:
    """One ``record_param_comms``. ``kind`` is a collective's, ``send``, ``recv`` or ``wait``.

    ``ranks`` is the group where the trace says it; "" as ``group`` stands for no name. ``splits`` are bytes
    for each member of the group, where the trace says them; ``sequence`` is what a ``wait`` names again;
    ``peer`` is a place in the group. ``first_ranks`` are those of a list that the trace cuts short.
    ``problem`` is why it can't be simulated: with its measured time it can be replayed.
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
    first_ranks: tuple[int, ...] = ()
    problem: str = ""
    hint: str = ""

    @property
    def collective(self) -> str:
        """What carries it: a reduction to one rank takes what a broadcast from it does."""
        return "broadcast" if self.kind == "reduce" else self.kind

    def share(self, rank: int, to: int, ranks: Sequence[int]) -> int:
        """Bytes that a rank sends to another, of the group ``ranks``, itself included."""
        if self.splits is not None:
            return self.splits[ranks.index(to)]
        if self.kind == "gather":
            return self.size_bytes if to == ranks[self.root] and rank != to else 0
        if self.kind == "scatter" and rank != ranks[self.root]:
            return 0
        return self.size_bytes // len(ranks)

    def check(self) -> None:
        """Refuse what can't be simulated.

        Raises
        ------
        WorkloadError
            Says why, and what would do.
        """
        if self.problem:
            more = "`collectives: measured` takes the time that the trace has"
            raise WorkloadError(self.problem, location=self.place, hint=f"{self.hint}; {more}".lstrip("; "))


def from_node(
    values: Sequence[Any], outputs: Sequence[Any], attributes: Mapping[str, Any], place: Location
) -> RecordedComm:
    """A communication from an ET node's inputs, outputs and attributes.

    Raises
    ------
    WorkloadError
        It names none, or sizes that don't fit each other.
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
    kind = known_kind(name)
    before = sum(size for value in values[:at] for _, size in tensors(value))
    after = sum(size for value in outputs for _, size in tensors(value))
    splits = None
    lists = [value for value in values[at + 1 :] if isinstance(value, list)]
    if kind == "all_to_all" and len(lists) >= 2 and lists[0]:
        splits = _splits(lists[0], before, place)
    ranks, size = _strided(values[at + 1 :])
    size = _whole(attributes.get("pg_size"), size)
    found = RecordedComm(place, kind or name, _size(kind, before, after, size), sequence, group, ranks, size)
    return replace(found, splits=splits) if kind else _unknown(found)


def from_arguments(arguments: Mapping[str, Any], place: Location) -> RecordedComm | None:
    """A communication from a Kineto event's arguments; None from a PyTorch that didn't write them."""
    name = arguments.get("Collective name")
    if not isinstance(name, str) or not name:
        return None
    sequence = _whole(arguments.get("Seq"), -1)
    group = str(arguments.get("Process Group Name", ""))
    if name == "wait" or name in SILENT:
        return RecordedComm(place, name, 0, sequence, group)
    kind, size = known_kind(name), _whole(arguments.get("Group size"), 0)
    ranks, cut = _numbers(arguments.get("Process Group Ranks"))
    found = RecordedComm(
        place, kind or name, 0, sequence, group, None if cut else ranks or None, size,
        first_ranks=ranks if cut else (),
    )  # fmt: skip
    if not kind:
        return _unknown(found)
    dtype = str(arguments.get("dtype", ""))
    width = width_of(dtype)
    counts = [_whole(arguments.get(f"{way} msg nelems"), None) for way in ("In", "Out")]
    if width is None and kind != "barrier":
        known = ", ".join(_WIDTH)
        return replace(found, problem=f"dtype is {dtype[:40]!r}", hint=f"known are: {known}")
    if counts == [None, None] and kind != "barrier":
        return replace(found, problem=f"the trace doesn't say how many elements {name[:40]} has")
    before, after = ((width or 0) * (count or 0) for count in counts)
    peer = arguments.get("Dst Rank" if kind == "send" else "Src Rank")
    found = replace(
        found,
        size_bytes=_size(kind, before, after, size, is_empty=counts[0] == 0),
        root=next((r for r in map(arguments.get, _ROOT) if type(r) is int and r >= 0), 0),
        peer=peer if type(peer) is int else None,
    )
    return _with_splits(found, arguments.get("In split size"), before)


def from_operator(
    name: str,
    arguments: Mapping[str, Any],
    libraries: Iterable[CommunicationLibrary],
    place: Location,
) -> RecordedComm | None:
    """What an operator sends that launches a library's kernel itself; None where none is known to."""
    listed = [arguments.get(key) for key in ("Input Dims", "Input type", "Concrete Inputs")]
    operator = TracedOperator(name, *(one if isinstance(one, list) else [] for one in listed))
    for library in libraries:
        sent = library.sends(operator)
        if sent is not None:
            return RecordedComm(place, sent.kind, sent.size_bytes, -1, sent.group)
    return None


_ROOT = ("Root Rank", "Root rank", "Root")


def _unknown(comm: RecordedComm) -> RecordedComm:
    return replace(
        comm,
        problem=f"the communication {comm.kind[:40]!r} can't be simulated",
        hint=f"there are: {', '.join(sorted({*_KINDS.values()}))}",
    )


def _with_splits(comm: RecordedComm, value: Any, total: int) -> RecordedComm:
    """With what goes to each member, where the trace says it: in elements, or rows of as many as fit."""
    listed, cut = _numbers(value)
    if comm.kind != "all_to_all" or not listed:
        return comm
    if cut:
        each = listed[0] * comm.group_size
        if len({*listed}) == 1 and comm.group_size and (total % each == 0 if each else not total):
            return replace(comm, splits=(total // comm.group_size,) * comm.group_size)
        return replace(
            comm,
            problem=f"the trace has the first {len(listed)} sizes of {comm.group_size} that all_to_all sends",
            hint="PyTorch cuts lists in Kineto traces; ETs have them whole: give `et:`, too",
        )
    if comm.group_size and len(listed) != comm.group_size:
        return replace(comm, problem=f"there are {len(listed)} sizes for a group of {comm.group_size}")
    rows = sum(listed)
    if rows == 0:
        return replace(comm, splits=tuple(0 for _ in listed), size_bytes=0)
    if total % rows:
        return replace(comm, problem=f"sizes add up to {rows}, but the buffer has {total} bytes")
    return replace(comm, splits=tuple(count * (total // rows) for count in listed))


def width_of(dtype: str) -> int | None:
    """Bytes of a number of a type, by PyTorch's or C++'s name; None: not known."""
    return _WIDTH.get(re.sub(r"^(c10::|at::|torch\.)|[ ]", "", str(dtype).lower()))


def known_kind(name: str) -> str:
    """The name of a collective as cosim has it, of PyTorch's and RCCL's; empty: not known."""
    return _KINDS.get(_FORMS.sub("", name.lower().replace("_", "")), "")


def tensors(value: Any) -> list[tuple[int, int]]:
    """(storage, bytes) of each tensor in it: ``[id, storage, offset, elements, width, device]``."""
    if not isinstance(value, list):
        return []
    if len(value) == 6 and isinstance(value[5], str) and all(type(part) is int for part in value[:5]):
        size = value[3] * value[4]
        return [(value[1], size)] if 0 <= size < 1 << 50 else []
    return [found for part in value[:100_000] if isinstance(part, list) for found in tensors(part)]


def _size(kind: str, before: int, after: int, group_size: int, *, is_empty: bool = False) -> int:
    """all-gather, gather: a rank's input; scatter: the root's; the others: a rank's buffer. ``is_empty``: the
    trace says that it sends nothing.
    """
    if kind in ("all_gather", "gather"):
        return before or (after // group_size if group_size else after)
    if kind == "scatter":
        return before or after * group_size
    if kind == "all_to_all" and is_empty:
        return 0
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
    return tuple(count * (total // rows) for count in listed)


Otherwise = TypeVar("Otherwise", int, None)


def _whole(value: Any, otherwise: Otherwise) -> int | Otherwise:
    return value if type(value) is int and 0 <= value < 1 << 50 else otherwise


def _numbers(value: Any) -> tuple[tuple[int, ...], bool]:
    """``"[0, 1, 2]"`` or a list; and whether it is cut short, as ``"[0, 1, ...]"``."""
    cut = False
    if isinstance(value, str):
        parts = [part.strip() for part in value.strip("[] ").split(",")]
        cut = "..." in parts
        value = [int(part) for part in parts if part.isdecimal() and len(part) < 16]
    if not isinstance(value, list) or not all(type(part) is int for part in value):
        return (), False
    return tuple(value), cut
