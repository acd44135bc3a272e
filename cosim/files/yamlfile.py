"""Topology files: YAML read into a model; a mistake names the file, the line and the key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from cosim.errors import Location, TopologyError
from cosim.spec import Spec

M = TypeVar("M", bound=Spec)


MAX_BYTES = 16 << 20
"""A file above this isn't read."""


def compose(path: Path) -> Any:
    """A YAML file as nodes, which know their lines.

    Raises
    ------
    TopologyError
        No such file, too large, or not YAML.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TopologyError(f"{path} is larger than the {MAX_BYTES >> 20} MiB that are read")
        return yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise TopologyError(f"can't read the topology file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TopologyError("not a text file", location=Location(str(path))) from None
    except RecursionError:
        raise TopologyError("nested too deep", location=Location(str(path))) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        reason = getattr(error, "problem", None) or "unreadable"
        raise TopologyError(f"not YAML: {reason}", location=Location(str(path), line)) from None


def read_yaml(file: str, base: Path | None, model: type[M]) -> M:
    """The file's content as ``model``; a relative ``file`` starts from ``base``.

    Raises
    ------
    TopologyError
        No such file, not YAML, or not what the model wants.
    """
    path = Path(file) if base is None else base / file
    node = compose(path)
    try:
        content = None if node is None else yaml.SafeLoader("").construct_document(node)
    except yaml.constructor.ConstructorError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else None
        raise TopologyError(f"not YAML: {error.problem}", location=Location(str(path), line)) from None
    except (ValueError, RecursionError) as error:  # a date that is none, a number of 5,000 digits
        raise TopologyError(f"can't be read: {error}", location=Location(str(path))) from None
    if not isinstance(content, dict):
        raise TopologyError(
            "a topology file is a mapping",
            location=Location(str(path), 1),
            hint=f"its keys: {', '.join(model.model_fields)}",
        )
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise TopologyError(
            first["msg"].removeprefix("Value error, "),
            location=Location(str(path), _line(node, first["loc"]), key or None),
        ) from None


def _line(node: Any, loc: Sequence[int | str]) -> int:
    """1-based line of the key or item at ``loc``, or of the nearest thing around it."""
    line = 1 if node is None else node.start_mark.line + 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(part)]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
    return int(line)
