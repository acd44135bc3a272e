"""Which cosim this is."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """Of cosim: its number, and a hash of its sources, which tells two of a number apart."""
    import cosim

    root = Path(cosim.__file__).resolve().parent
    return f"{cosim.__version__}+{tree(root)}"


def tree(root: Path) -> str:
    """A hash of a package's sources."""
    content = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".yaml", ".json", ".csv")):
        content.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return content.hexdigest()[:12]
