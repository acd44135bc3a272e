"""What a store has, for people: a table, a part of it, one run."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cosim.errors import InputError, ScenarioError
from cosim.experiment.settings import SHORT_KEYS, parse_path
from cosim.experiment.store.entry import StoreEntry
from cosim.experiment.store.version import version
from cosim.files.located_yaml import parse_value
from cosim.units import PS_PER_S, format_time, parse_span

if TYPE_CHECKING:
    from cosim.experiment.store.runs import RunStore

_OWN = ("name", "version", "network", "seed", "digest", "error")
"""What ``--where`` asks of a run itself; anything else is a setting's path."""


def chosen(entries: Iterable[StoreEntry], where: Iterable[str]) -> list[StoreEntry]:
    """Those of which all ``PATH=VALUE`` hold.

    Raises
    ------
    InputError
        Not PATH=VALUE.
    """
    wanted = [_wanted(text) for text in where]
    return [one for one in entries if all(_value(one, path) in values for path, values in wanted)]


def prunable(
    entries: Iterable[StoreEntry],
    where: Sequence[str],
    older: str | None,
    *,
    other_versions: bool,
    failed: bool,
) -> list[StoreEntry]:
    """Those that all that was asked for applies to; none where nothing was asked for.

    Raises
    ------
    InputError
        ``older`` is no time, or ``where`` isn't PATH=VALUE.
    """
    if not (where or older or other_versions or failed):
        return []
    found = chosen(entries, where)
    if older:
        try:
            age = datetime.timedelta(seconds=parse_span(older) / PS_PER_S)
            before = (datetime.datetime.now(datetime.UTC) - age).isoformat(timespec="seconds")
        except (ValueError, OverflowError) as error:
            raise InputError(f"--older {older}: {error}", hint="--older 30d") from error
        # As texts: all are UTC and to the second, so they are in the order of time.
        found = [one for one in found if one.created < before]
    if other_versions:
        found = [one for one in found if one.version != version()]
    return [one for one in found if one.error] if failed else found


def begins_with(store: RunStore, start: str) -> StoreEntry:
    """The run whose id begins so.

    Raises
    ------
    InputError
        There is none, or there are several.
    """
    ids = [one for found in store.listing().values() for one in found if one.startswith(start)]
    if len(ids) != 1:
        what = f"{len(ids)} runs begin" if ids else "no run begins"
        raise InputError(f"{what} with {start!r}", hint="`cosim runs list` lists them")
    return store.entry(ids[0])


def rows(entries: Iterable[StoreEntry]) -> list[list[str]]:
    """A head, and a row for each run."""
    found = [["run", "when", "name", "seed", "network", "iteration", "took", "digest"]]
    for one in entries:
        time = one.measures.get("iteration")
        came = one.error.splitlines()[0][:60] if time is None else format_time(round(time))
        when = one.created[:16].replace("T", " ")
        found.append(
            [
                one.id[:12],
                when,
                one.name,
                str(one.seed),
                one.network,
                came,
                f"{one.seconds:.1f} s",
                one.digest,
            ]
        )
    return found


def columns(table: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, their columns below one another."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def csv_rows(entries: Sequence[StoreEntry]) -> list[list[Any]]:
    """A head, and a row for each run with every measure; times in picoseconds."""
    measures = list(dict.fromkeys(name for one in entries for name in one.measures))
    head = ["id", "created", "name", "seed", "network", "version", "seconds", "digest", "error", *measures]
    found: list[list[Any]] = [head]
    for one in entries:
        own = [one.id, one.created, one.name, one.seed, one.network, one.version, one.seconds, one.digest]
        found.append([*own, one.error, *(one.measures.get(name, "") for name in measures)])
    return found


def about(entry: StoreEntry) -> list[str]:
    """One run: what it is, what it rests on."""
    current = "" if entry.version == version() else f" (this is {version()})"
    lines = [
        f"run      {entry.id}",
        f"when     {entry.created}, {entry.seconds:.1f} s",
        f"version  {entry.version}{current}",
        *(f"read     {path}  {state[:12]}" for path, state in entry.files.items()),
    ]
    return [*lines, f"failed   {entry.error}"] if entry.error else lines


def _wanted(text: str) -> tuple[tuple[str | int, ...], tuple[Any, ...]]:
    path, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--where {text}: there is no '='", hint="--where network=fair_share")
    try:
        return parse_path(path, text), (value, parse_value(value))
    except ScenarioError as error:
        raise InputError(f"--where {text}: {error.message}") from None


def _value(entry: StoreEntry, path: tuple[str | int, ...]) -> Any:
    """A setting's value; what a lone name stands for is found either way. None where it was left out."""
    if len(path) == 1 and path[0] in _OWN:
        return getattr(entry, str(path[0]))
    here: Any = entry.settings
    for at, key in enumerate(path):
        if isinstance(here, dict):
            here = here.get(str(key))
        elif isinstance(here, list) and isinstance(key, int) and key < len(here):
            here = here[key]
        else:
            return here if isinstance(here, str) and SHORT_KEYS.get(path[at - 1]) == key else None
    short = SHORT_KEYS.get(path[-1])
    return here.get(short) if isinstance(here, dict) and short else here
