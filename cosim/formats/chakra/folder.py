"""Which file is which rank's: ``PREFIX.<rank>.et``, as ASTRA-sim names them, or ``PREFIX.<rank>.json``."""

from __future__ import annotations

import re
from pathlib import Path

from cosim.errors import Location, WorkloadError

_NAME = re.compile(r"^(?P<prefix>.+)\.(?P<rank>0|[1-9]\d*)\.(?P<kind>et|json)$")


def rank_files(path: Path) -> list[Path]:
    """Files of ranks 0 to n-1.

    ``path`` is a prefix (``runs/gpt`` for ``runs/gpt.0.et`` ...), a folder that holds exactly one
    prefix, or one .et file, which then is rank 0's.

    Raises
    ------
    WorkloadError
        Nothing there, several prefixes in the folder, or a rank without a file.
    """
    if path.is_file():
        return [path]
    if path.is_dir():
        found = _prefixes(path)
        if not found:
            single = sorted(path.glob("*.et")) or sorted(path.glob("*.json"))
            if len(single) == 1:
                return single
            raise WorkloadError(
                "the folder holds no files named PREFIX.<rank>.et", location=Location(str(path))
            )
        if len(found) > 1:
            raise WorkloadError(
                f"the folder holds several traces: {_listed(found)}",
                location=Location(str(path)),
                hint=f"name one, as in {path / sorted(found)[0]}",
            )
        prefix = next(iter(found))
        return _in_order(path / prefix, found[prefix])
    there = _prefixes(path.parent) if path.parent.is_dir() else {}
    if path.name not in there:
        hint = f"in {path.parent} there are: {_listed(there)}" if there else None
        raise WorkloadError(f"there is no file {path}.0.et", location=Location(str(path)), hint=hint)
    return _in_order(path, there[path.name])


def _prefixes(folder: Path) -> dict[str, dict[int, Path]]:
    found: dict[str, dict[int, Path]] = {}
    for file in sorted(folder.iterdir()):
        match = _NAME.match(file.name)
        if match is not None:
            ranks = found.setdefault(match["prefix"], {})
            if match["kind"] == "et" or int(match["rank"]) not in ranks:
                ranks[int(match["rank"])] = file
    return found


def _in_order(prefix: Path, files: dict[int, Path]) -> list[Path]:
    missing = [rank for rank in range(max(files) + 1) if rank not in files]
    if missing:
        shown = ", ".join(str(rank) for rank in missing[:8]) + (" ..." if len(missing) > 8 else "")
        raise WorkloadError(
            f"there are files up to rank {max(files)}, but none for rank {shown}",
            location=Location(str(prefix)),
            hint=f"ranks are numbered from 0 without gaps: {prefix.name}.0.et, {prefix.name}.1.et ...",
        )
    return [files[rank] for rank in sorted(files)]


def _listed(prefixes: dict[str, dict[int, Path]]) -> str:
    names = sorted(prefixes)
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
