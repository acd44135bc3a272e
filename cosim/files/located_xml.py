"""XML with the line of every element, read with care: no entities, bounded size and depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from cosim.errors import InputError, Location
from cosim.files.text import check_regular
from cosim.registry import nearest

MAX_BYTES = 64 << 20
"""A file above this isn't read: MSCCL's largest are below 10 MB, NCCL's topologies below 100 kB."""
MAX_DEPTH = 64


@dataclass(eq=False)
class Element:
    """An element: ``tag``, ``attributes``, ``children``, and where it stands.

    Its readers raise ``error``, the class of the file's reader, with file and line.
    """

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    error: type[InputError]
    children: list[Element] = field(default_factory=list)

    def wrong(self, message: str, attribute: str | None = None, hint: str | None = None) -> InputError:
        """An error at this element, or at one of its attributes."""
        key = f"<{self.tag}>" if attribute is None else f'<{self.tag}> {attribute}="{self._shown(attribute)}"'
        return self.error(message, location=Location(self.file, self.line, key), hint=hint)

    def _shown(self, attribute: str) -> str:
        value = self.attributes.get(attribute, "")
        return value if len(value) <= 60 else f"{value[:57]}..."

    def text(self, attribute: str, default: str | None = None) -> str:
        """An attribute; one without a default must be there."""
        value = self.attributes.get(attribute, default)
        if value is None:
            have = ", ".join(self.attributes) or "none"
            raise self.wrong(f"has no attribute {attribute!r}; it has: {have}")
        return value

    def integer(self, attribute: str, least: int, most: int, default: int | None = None) -> int:
        """A whole number from ``least`` to ``most``."""
        if default is not None and attribute not in self.attributes:
            return default
        text = self.text(attribute).strip()
        # int() takes time quadratic in the digits, underscores, and digits of any script.
        plain = text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 20
        value = int(text) if plain else None
        if value is None or not least <= value <= most:
            raise self.wrong(f"should be a whole number from {least} to {most}", attribute)
        return value

    def one_of(self, attribute: str, names: Sequence[str], default: str | None = None) -> str:
        """One of a few names."""
        value = self.text(attribute, default)
        if value not in names:
            raise self.wrong(f"should be one of {', '.join(names)}{nearest(value, sorted(names))}", attribute)
        return value


def read_xml(path: Path, error: type[InputError]) -> Element:
    """The root element of a file.

    Raises
    ------
    error
        No such file, above :data:`MAX_BYTES`, or not well-formed; with the line.
    """
    try:
        check_regular(path, error)
        if path.stat().st_size > MAX_BYTES:
            raise error(f"{path} has {path.stat().st_size} bytes; XML is read up to {MAX_BYTES >> 20} MiB")
        content = path.read_bytes()
    except OSError as problem:
        raise error(f"can't read {path}: {problem.strerror}") from None
    return parse_xml(content, str(path), error)


def parse_xml(content: bytes | str, file: str, error: type[InputError]) -> Element:
    """The root element of ``content``; ``file`` is what errors call it. See :func:`read_xml`."""
    parser = expat.ParserCreate()
    open_elements: list[Element] = []
    roots: list[Element] = []

    def here(message: str) -> InputError:
        return error(message, location=Location(file, parser.CurrentLineNumber))

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, file, parser.CurrentLineNumber, error)
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)
        if len(open_elements) > MAX_DEPTH:
            raise here(f"elements nested more than {MAX_DEPTH} deep")

    def end(_: str) -> None:
        open_elements.pop()

    def entity(*_: object) -> None:
        raise here("declares an entity, which is not read")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, entity
    try:
        parser.Parse(content, True)
    except expat.ExpatError as problem:
        raise error(
            f"not XML: {expat.ErrorString(problem.code)}", location=Location(file, problem.lineno)
        ) from None
    except (LookupError, ValueError) as problem:  # an encoding that Python doesn't know, or can't decode
        raise here(f"not XML: {problem}") from None
    return roots[0]
