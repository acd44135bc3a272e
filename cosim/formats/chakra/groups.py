"""Process groups of a trace: ASTRA-sim's communicator-group file, or PyTorch's metadata inside the trace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cosim.errors import Location, WorkloadError

GROUPS_FILE = "comm_groups.json"
"""ASTRA-sim's form: ``{"1": [0, 1], ...}``; only there if a collective is not over all ranks."""

Groups = dict[str, tuple[int, ...]]
"""Group name -> ranks, in group order; an empty tuple stands for all ranks."""


def read_comm_groups(source: str | Mapping[str, Sequence[int]], base: Path) -> Groups:
    """Groups from ASTRA-sim's JSON ``{"1": [0, 1, 2, 3], ...}``, or from the same given in place.

    Raises
    ------
    WorkloadError
        No such file, not JSON, or not of that form.
    """
    if not isinstance(source, str):
        return {str(name): _ranks(name, ranks, "comm_groups", empty=False) for name, ranks in source.items()}
    path = base / source
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkloadError(
            f"can't be read: {error.strerror or error}", location=Location(str(path))
        ) from None
    except (ValueError, RecursionError) as error:  # JSONDecodeError, UnicodeDecodeError, too deep
        line = getattr(error, "lineno", None)
        raise WorkloadError(f"not JSON: {error}", location=Location(str(path), line)) from None
    if not isinstance(found, dict):
        raise WorkloadError(
            f"holds a {type(found).__name__}; it should hold groups",
            location=Location(str(path)),
            hint='write {"1": [0, 1], "2": [2, 3]}',
        )
    return {str(name): _ranks(name, ranks, str(path), empty=False) for name, ranks in found.items()}


def read_metadata_groups(values: str, file: str, node: str) -> Groups:
    """Groups that PyTorch recorded: ``inputs.values`` of a METADATA node; other metadata gives none.

    The text is a list of one JSON text, ``['[{"pg_name": "1", "ranks": [0, 1]}, ...]']``; without ranks a
    group is all ranks.

    Raises
    ------
    WorkloadError
        It names process groups, but can't be read.
    """
    if "pg_name" not in values:
        return {}
    text = values.strip()
    if text[:2] in ("['", '["') and text[-2:] in ("']", '"]'):
        text = text[2:-2]
    where = Location(file, key=node)
    try:
        found = json.loads(text.replace('\\"', '"'))
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"process groups that aren't JSON: {error}", location=where) from None
    groups: Groups = {}
    for item in found if isinstance(found, list) else [found]:
        if not isinstance(item, dict) or "pg_name" not in item:
            raise WorkloadError(f"a process group without pg_name: {str(item)[:80]}", location=where)
        groups[str(item["pg_name"])] = _ranks(
            item["pg_name"], item.get("ranks") or [], f"{file}: {node}", empty=True
        )
    return groups


def _ranks(name: object, ranks: object, where: str, *, empty: bool) -> tuple[int, ...]:
    if (
        not isinstance(ranks, Sequence)
        or not all(type(rank) is int and rank >= 0 for rank in ranks)
        or not (ranks or empty)
    ):
        raise WorkloadError(
            f"group {name!r} should be a list of ranks, not {str(ranks)[:80]}", location=Location(where)
        )
    if len(set(ranks)) != len(ranks):
        raise WorkloadError(f"group {name!r} names a rank twice: {list(ranks)}", location=Location(where))
    return tuple(ranks)
