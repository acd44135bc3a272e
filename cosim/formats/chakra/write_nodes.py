"""Chakra nodes as they stand in a file, with the attribute types that upstream's generator uses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cosim.formats.chakra.et_def_pb2 import GlobalMetadata, Node
from cosim.formats.chakra.file import framed
from cosim.translation.loss_report import TranslationError
from cosim.units import PS_PER_US

SCHEMA = "0.0.4"
_INT32 = frozenset({"comm_src", "comm_dst", "comm_tag"})
_LARGEST_TAG = 2**32 - 1


def node(
    number: int,
    name: str,
    kind: str,
    deps: Iterable[int] = (),
    duration_ps: int = 0,
    /,
    **attributes: int | str | bool,
) -> Node:
    """A node; ``kind`` is Chakra's, without ``_NODE``. Durations are rounded to whole microseconds.

    Raises
    ------
    TranslationError
        A tag beyond 32 bits.
    """
    made = Node(
        id=number, name=name, type=f"{kind}_NODE", data_deps=deps, duration_micros=whole_us(duration_ps)
    )
    for key, value in attributes.items():
        attribute = made.attr.add()
        attribute.name = key
        if isinstance(value, bool):
            attribute.bool_val = value
        elif isinstance(value, str):
            attribute.string_val = value
        elif key in _INT32 and value < 2**31:
            attribute.int32_val = value
        elif key == "comm_tag" and value > _LARGEST_TAG:
            raise TranslationError(
                f"node {number} {name!r}: tag {value} is beyond the 32 bits of a Chakra tag"
            )
        else:
            attribute.int64_val = value
    return made


def whole_us(duration_ps: int) -> int:
    """Microseconds, half up: all that a Chakra node's duration can say."""
    return (duration_ps + PS_PER_US // 2) // PS_PER_US


def write_trace(path: Path, nodes: Iterable[Node]) -> int:
    """Write one rank's file, node by node; how many."""
    count = 0
    with path.open("wb") as file:
        file.write(framed(GlobalMetadata(version=SCHEMA)))
        for count, one in enumerate(nodes, 1):  # noqa: B007 - the count is what is wanted
            file.write(framed(one))
    return count
