"""Which cosim this is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """The version of cosim: its number, and a hash of its sources, which tells two of a number apart."""
    import cosim

    root = Path(cosim.__file__).resolve().parent
    return f"{cosim.__version__}+{tree(root)}"


def tree(root: Path) -> str:
    """A hash of cosim's sources: in Python, in C, and data."""
    content = hashlib.sha256()
    for path in sorted(
        p for p in tree_files(root) if p.suffix in (".py", ".c", ".h", ".yaml", ".json", ".csv")
    ):
        content.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return content.hexdigest()[:12]


def tree_files(root: Path) -> Iterator[Path]:
    """All files of a package but compiled Python."""
    return (path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
