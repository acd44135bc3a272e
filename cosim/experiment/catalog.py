"""Everything that a scenario can name, for people: ``cosim list``."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel

from cosim.errors import InputError
from cosim.experiment.fields import describe, group_of, models_in, show, show_default
from cosim.registry import GROUPS, find, names, nearest
from cosim.spec import Spec

_SCENARIO = "scenario"
_SWEEP = "sweep"
_MORE = """\
scenario: the keys of a scenario file
  cosim list scenario
sweep: those of a file that runs a scenario many times
  cosim list sweep
  cosim list KIND NAME
"""


def list_all() -> str:
    """Every kind, every name, and the first line of what it is."""
    parts = [list_group(group) for group in GROUPS if names(group)]
    return "\n".join([*parts, _MORE])


def list_group(kind: str) -> str:
    """The names of one kind.

    Raises
    ------
    InputError
        No such kind.
    """
    if kind == _SCENARIO:
        return _scenario_keys()
    if kind == _SWEEP:
        return _sweep_keys()
    group = _group(kind)
    width = max((len(name) for name in names(group)), default=0)
    lines = [f"  {name:<{width}}  {_about(group, name)}".rstrip() for name in names(group)]
    return "\n".join([f"{GROUPS[group].noun}:", *lines]) + "\n"


def list_one(kind: str, name: str) -> str:
    """What one name is: its text, and each field with what it takes and its default.

    Raises
    ------
    InputError
        No such kind or name.
    """
    group = _group(kind)
    try:
        found = find(group, name)
    except ValueError as error:
        raise InputError(str(error)) from None
    text = inspect.cleandoc(_doc(found))
    return (
        "\n".join([f"{name} ({GROUPS[group].noun})", "", text, "", *_fields(found), *_sections(found)]) + "\n"
    )


def _group(kind: str) -> str:
    group = group_of(kind)
    if group is None:
        kinds = [*(group.removeprefix("cosim.") for group in GROUPS), _SCENARIO, _SWEEP]
        singles = [*(about.noun for about in GROUPS.values()), *kinds]
        raise InputError(
            f"there is no kind {kind!r}{nearest(kind, singles)}", hint=f"there are: {', '.join(kinds)}"
        )
    return group


def _about(group: str, name: str) -> str:
    try:
        return _first_line(find(group, name))
    except ValueError as error:  # somebody's package; its siblings are still worth listing
        return f"({error})"


def _doc(found: Spec | type[Spec]) -> str:
    return found.about() if isinstance(found, Spec) else found.__doc__ or ""


def _first_line(found: Spec | type[Spec]) -> str:
    first: list[str] = []
    for line in inspect.cleandoc(_doc(found)).splitlines():
        if not line:
            break
        first.append(line)
    return " ".join(first).removesuffix(".")


def _fields(found: Any) -> list[str]:
    model = found if inspect.isclass(found) else type(found)
    if not issubclass(model, BaseModel):
        return []
    if not model.model_fields:
        return ["no fields"]
    lines = ["fields:"]
    for key, info in model.model_fields.items():
        if isinstance(found, BaseModel):
            default = f"here {show(info, getattr(found, key))}"
        else:
            default = "required" if info.is_required() else f"default {show_default(info) or 'empty'}"
        lines.append(f"  {info.alias or key} ({default})")
        lines.append(f"      {describe(info)}")
        if info.description:
            lines.append(f"      {info.description}")
    return lines


def _sections(found: Any, path: str = "") -> list[str]:
    """The fields of mappings within the fields, each under its path: ``hosts``, ``jobs[...]``."""
    model = found if inspect.isclass(found) else type(found)
    lines: list[str] = []
    for key, info in getattr(model, "model_fields", {}).items():
        for inner, listed in models_in(info):
            where = f"{path}{info.alias or key}{'[...]' if listed else ''}"
            lines += ["", where, *_fields(inner), *_sections(inner, f"{where}.")]
    return lines


def _scenario_keys() -> str:
    from cosim.experiment.scenario import Scenario

    title = "scenario: the keys of a scenario file"
    return "\n".join([title, "", *_fields(Scenario), *_sections(Scenario)]) + "\n"


def _sweep_keys() -> str:
    from cosim.experiment.sweep import Sweep
    from cosim.results.quantities import QUANTITIES

    width = max(map(len, QUANTITIES))
    measures = [f"  {name:<{width}}  {one.text}" for name, one in QUANTITIES.items()]
    title = "sweep: the keys of a file that runs a scenario many times"
    return "\n".join([title, "", *_fields(Sweep), "", "measures", *measures]) + "\n"
