"""What ``cosim learn`` prints: what a model has, and what an audit found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cosim.synthesis.audit import Finding
from cosim.synthesis.model import Role, TraceModel, read_model
from cosim.synthesis.sources import read_sources
from cosim.workload.program import Workload

_MOST = 20


def told_model(model: TraceModel, out: Path) -> str:
    """Lines about a model."""
    lines = [
        f"{out}: {model.ranks} ranks in {len(model.roles)} roles, {len(model.kinds):,} kinds of operations"
    ]
    if model.hide > 1:
        few = [model.kinds[kind].name for kind, count in sorted(_counts(model).items()) if count < model.hide]
        lines.append(f"hidden: each size and duration is shared by {model.hide} operations or more")
        lines.append(f"of fewer there is one mean, in 16 steps an octave: {', '.join(few[:8]) or 'none'}")
    else:
        lines += [f"{name}: {times} repeated" for name, times in _blocks(model.roles[0])]
    for family in model.families:
        size = len(family.groups[0])
        grows = "with more ranks it grows" if family.grows else "with more ranks there are more of them"
        lines.append(f"groups of {size}: {len(family.groups)}; {grows}")
    return "\n".join(lines)


def _counts(model: TraceModel) -> Counter[int]:
    """Operations of each kind, of all roles."""
    found: Counter[int] = Counter()
    for role in model.roles:
        if role.hidden is not None:
            found.update(talk.kind for talk in role.hidden.talks)
            for band in role.hidden.bands:
                found.update({kind: count for kind, count, _ in band.kinds})
    return found


def _blocks(role: Role) -> list[tuple[str, int]]:
    assert role.operations is not None
    found: Counter[int] = Counter()
    for row in role.operations.blocks:
        found[row[1] - row[0]] += len(row) - 1
    return [(f"block of {size} operations", times) for size, times in found.most_common(3)]


def told_findings(found: Sequence[Finding], where: Path) -> str:
    """Lines about an audit."""
    if not found:
        return f"{where}: nothing of the traces that fewer share"
    lines = [f"{where}: {len(found):,} things of the traces"]
    lines += [f"  {one.what} {one.value}, shared by {one.shared_by}" for one in found[:_MOST]]
    return "\n".join([*lines, *(["  ..."] if len(found) > _MOST else [])])


def read_made(path: Path) -> Workload | TraceModel:
    """A model's file, or a folder of synthetic traces.

    Raises
    ------
    InputError
        It is neither.
    """
    if path.suffix == ".json":
        return read_model(path)
    return read_sources([path], world_size=None, gpu=None, dependencies="all")
