"""Attributes of a Chakra node, with the conversions that FeederV3 makes and those it refuses.

Integers and booleans of any width convert to each other; floats and texts don't become integers. Of two
attributes with one name the first counts.
"""

from __future__ import annotations

from cosim.errors import Location, WorkloadError
from cosim.formats.chakra.et_def_pb2 import AttributeProto, Node

_INTEGERS = frozenset(
    f"{kind}_val"
    for kind in (
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
    )
)


class Attributes:
    """The attributes of one node; each getter returns None where the attribute is absent."""

    def __init__(self, node: Node, file: str) -> None:
        self._node = node
        self._file = file
        self._values: dict[str, AttributeProto] = {}
        for attribute in node.attr:
            self._values.setdefault(attribute.name, attribute)

    def names(self) -> list[str]:
        """Names, in file order."""
        return list(self._values)

    def integer(self, name: str) -> int | None:
        """An integer."""
        attribute = self._values.get(name)
        if attribute is None:
            return None
        kind = attribute.WhichOneof("value")
        if kind not in _INTEGERS:
            raise self._wrong(name, kind, "an integer")
        return int(getattr(attribute, str(kind)))

    def text(self, name: str) -> str | None:
        """A text; integers are written out."""
        attribute = self._values.get(name)
        if attribute is None:
            return None
        kind = attribute.WhichOneof("value")
        if kind == "string_val":
            return attribute.string_val
        if kind in _INTEGERS:
            return str(getattr(attribute, str(kind)))
        raise self._wrong(name, kind, "a text")

    def flags(self, name: str) -> tuple[bool, ...] | None:
        """A list of booleans."""
        attribute = self._values.get(name)
        if attribute is None:
            return None
        kind = attribute.WhichOneof("value")
        if kind != "bool_list":
            raise self._wrong(name, kind, "a bool_list")
        return tuple(bool(value) for value in attribute.bool_list.values)

    def error(self, message: str, hint: str | None = None) -> WorkloadError:
        """An error at this node."""
        return node_error(self._file, self._node, message, hint)

    def _wrong(self, name: str, kind: str | None, expected: str) -> WorkloadError:
        return self.error(f"attribute {name!r} is {kind or 'without a value'}; it should be {expected}")


def node_error(file: str, node: Node, message: str, hint: str | None = None) -> WorkloadError:
    """``FILE: node 7 'all_reduce': message``."""
    return WorkloadError(message, location=Location(file, key=f"node {node.id} {node.name!r}"), hint=hint)
