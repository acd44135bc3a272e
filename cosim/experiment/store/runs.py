"""Finding and keeping runs."""

from __future__ import annotations

import datetime
import hashlib
import json
import logging
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.doubts import in_a_line
from cosim.errors import InputError, Location
from cosim.experiment.store.entry import StoreEntry, from_bytes, to_bytes
from cosim.experiment.store.place import StorePlace, place_of
from cosim.files.reads import are_current

if TYPE_CHECKING:
    from cosim.experiment.store.question import Question
    from cosim.results.measures import Alone
    from cosim.results.summary import Summary

_log = logging.getLogger("cosim")
_SELF = "store.json"
_ENTRIES, _PARTS = "runs", "parts"

Parts = Mapping[str, bytes]
"""Files of a run's folder."""


@dataclass(frozen=True)
class NewRun:
    """A run as a store takes it."""

    entry: StoreEntry
    parts: Parts


@dataclass(frozen=True)
class RunStore:
    """A store at an address; ``identity`` tells it from others that lie at the same path elsewhere."""

    address: str
    identity: str

    @cached_property
    def place(self) -> StorePlace:
        """Its files."""
        return place_of(self.address)

    def is_here(self) -> bool:
        """Whether this process sees it: another machine may have none, or another, at the same path."""
        try:
            return _identity(self.place) == self.identity
        except InputError:
            return False

    def listing(self) -> dict[str, list[str]]:
        """Ids of the runs that are there now, by their question's hash."""
        found = defaultdict(list)
        for id_ in self._ids(_ENTRIES):
            found[id_.partition("-")[0]].append(id_)
        return found

    def find(
        self, question: Question, *, parts: Iterable[str] = (), listing: Mapping[str, list[str]] | None = None
    ) -> StoreEntry | None:
        """The run that answers a question, with these files in its folder; None where there is none.

        Parameters
        ----------
        question
            What is asked.
        parts
            Files that its folder has to have.
        listing
            What :meth:`listing` gave, where many are looked for.
        """
        if listing is None:
            ids = [one for one in self._ids(f"{_ENTRIES}/{question.key[:2]}") if one.startswith(question.key)]
        else:
            ids = listing.get(question.key, [])
        for id_ in ids:
            try:
                entry = self.entry(id_)
            except InputError as error:
                _log.warning("%s; it is run again", error)
                continue
            # There are several where files that a run reads were changed in between: each state has its
            # answer.
            if {*parts} <= {*entry.parts} and are_current(entry.files, question.base):
                return entry
        return None

    def entry(self, id_: str) -> StoreEntry:
        """The run of an id.

        Raises
        ------
        InputError
            There is none, or it can't be read.
        """
        name = _name(id_)
        try:
            return from_bytes(self.place.read(name))
        except (OSError, ValueError, TypeError, InputError) as error:
            what = error.message if isinstance(error, InputError) else str(error)
            raise InputError(what, location=Location(f"{self.address}/{name}")) from error

    def entries(self) -> tuple[list[StoreEntry], dict[str, str]]:
        """Every run, by date; and of each that can't be read, why."""
        names = {_name(id_): id_ for id_ in self._ids(_ENTRIES)}
        found, broken = [], {}
        for name, content in self.place.read_all(names).items():
            try:
                found.append(from_bytes(content))
            except (ValueError, TypeError, InputError) as error:
                broken[names[name]] = str(error)
        return sorted(found, key=lambda one: (one.created, one.id)), broken

    def keep(self, kept: NewRun) -> None:
        """Put a run into the store. OSError where that can't be done, and then nothing of it is there."""
        folder = _folder(kept.entry.id)
        try:
            for name, content in kept.parts.items():
                self.place.write(f"{folder}/{name}", content)
            # The entry last: who finds it finds all its files, and a writer that dies leaves no half of a
            # run.
            self.place.write(_name(kept.entry.id), to_bytes(kept.entry))
        except OSError:
            for name in kept.parts:
                self.place.remove(f"{folder}/{name}")
            raise

    def part(self, entry: StoreEntry, name: str) -> bytes:
        """A file of a run's folder.

        Raises
        ------
        InputError
            It is not there, cut off or changed.
        """
        where = f"{_folder(entry.id)}/{name}"
        try:
            content = self.place.read(where)
        except OSError as error:
            raise InputError(str(error), location=Location(f"{self.address}/{where}")) from error
        if _hash(content) != entry.parts.get(name):
            raise InputError("cut off, or changed", location=Location(f"{self.address}/{where}"))
        return content

    def summary(self, entry: StoreEntry) -> Summary:
        """What came of a run.

        Raises
        ------
        InputError
            It can't be read.
        """
        from cosim.results.store import SUMMARY_FILE
        from cosim.results.summary import Summary

        return Summary.from_json(json.loads(self.part(entry, SUMMARY_FILE)))

    def copy(self, entry: StoreEntry, target: Path) -> None:
        """Every file of a run's folder, to another folder.

        Raises
        ------
        InputError
            One can't be read, or written.
        """
        for name in entry.parts:
            part = self.part(entry, name)
            try:
                (target / name).write_bytes(part)
            except OSError as error:
                why = f"can't be written: {error.strerror or error}"
                raise InputError(why, location=Location(str(target / name))) from error

    def remove(self, id_: str) -> None:
        """Take a run out: its entry first, so that nobody finds half of it."""
        self.place.remove(_name(id_))
        for name in self.place.names(_folder(id_)):
            self.place.remove(name)

    def clear(self) -> int:
        """Remove what writers that died have left: unfinished files, folders without an entry; how many."""
        known, count = {*self._ids(_ENTRIES)}, self.place.clear()
        for name in self.place.names(_PARTS):
            if name.split("/")[2] not in known:
                self.place.remove(name)
                count += 1
        return count

    def _ids(self, folder: str) -> list[str]:
        names = self.place.names(folder)
        return [name.rpartition("/")[2].removesuffix(".json") for name in names if name.endswith(".json")]


class Keeper:
    """Keeps what workers couldn't; says once where that can't be done."""

    def __init__(self, store: RunStore | None) -> None:
        self._store = store
        self._failed = False

    def keep(self, run: NewRun | None) -> str:
        """Put a run into the store: its id there; empty where it isn't."""
        if run is None or self._store is None:
            return ""
        try:
            self._store.keep(run)
        except OSError as error:
            if not self._failed:
                why = error.strerror or error
                _log.warning(
                    "the store %s can't keep a run: %s; its result is not lost, but will be run again",
                    self._store.address,
                    why,
                )
            self._failed = True
            return ""
        return run.entry.id


def open_store(address: str | Path, *, new: bool = True) -> RunStore:
    """The store at an address; made there, if ``new`` lets it.

    Raises
    ------
    InputError
        There is none, or it can't be made.
    """
    text = str(address)
    place = place_of(text)
    identity = _identity(place)
    if not identity:
        if not new:
            raise InputError(
                "there is no store here", location=Location(text), hint="`cosim run ... --store` makes one"
            )
        try:
            place.write(_SELF, json.dumps({"store": uuid.uuid4().hex}).encode(), once=True)
        except OSError as error:
            why = error.strerror or str(error)
            raise InputError(f"can't make a store: {why}", location=Location(text)) from error
        identity = _identity(place)
    return RunStore(text if "://" in text else str(Path(text).resolve()), identity)


def kept(
    question: Question,
    name: str,
    summary: Summary | None,
    files: Mapping[str, str],
    seconds: float,
    alone: Alone | None = None,
    error: str = "",
    parts: Parts | None = None,
    read: Parts | None = None,
) -> NewRun:
    """A run that has ended, as a store takes it.

    Parameters
    ----------
    question, name
        What it answers, and what the scenario is called.
    summary
        What came of it; None where it could not go on.
    files
        State of what it read.
    seconds
        How long it took.
    alone
        Mean iteration of each job by itself, where that was asked for.
    error
        Why it could not go on.
    parts
        Files of its folder; the summary alone, where nothing is said.
    read
        Further files: what a study read of the run.
    """
    from cosim.results.store import SUMMARY_FILE

    if parts is None:
        parts = {} if summary is None else {SUMMARY_FILE: _json(summary), **(read or {})}
    # Of question and files: two clients that answer the same write the same name, like over like.
    state = hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode("utf-8", "surrogateescape"))
    now = datetime.datetime.now(datetime.UTC)
    entry = StoreEntry(
        id=f"{question.key}-{state.hexdigest()[:8]}",
        name=name,
        settings=question.settings,
        version=question.version,
        files=dict(files),
        digest="" if summary is None else summary.digest,
        measures={} if summary is None else _measures(summary, alone),
        alone=None if alone is None else dict(alone),
        error=error,
        seconds=round(seconds, 3),
        created=now.isoformat(timespec="seconds"),
        parts={name: _hash(content) for name, content in parts.items()},
        doubtful="" if summary is None else in_a_line(summary.doubts),
        base=str(question.base.resolve()),
    )
    return NewRun(entry, parts)


def whole_parts(write: Callable[[Path], object]) -> dict[str, bytes]:
    """What ``write`` puts into a folder, as files of a run's."""
    with tempfile.TemporaryDirectory(prefix="cosim-") as folder:
        write(Path(folder))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}


def _measures(summary: Summary, alone: Alone | None) -> dict[str, float]:
    from cosim.results.measures import MEASURES

    found = {}
    for name, measure in MEASURES.items():
        if alone is not None or not measure.needs_alone:
            try:
                found[name] = measure.of(summary, alone or {})
            except InputError:  # a network that reports none
                continue
    return found


def _json(summary: Summary) -> bytes:
    return json.dumps(summary.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _name(id_: str) -> str:
    return f"{_ENTRIES}/{id_[:2]}/{id_}.json"


def _folder(id_: str) -> str:
    return f"{_PARTS}/{id_[:2]}/{id_}"


def _identity(place: StorePlace) -> str:
    """Empty where there is no store.

    Raises
    ------
    InputError
        There is something else.
    """
    try:
        content = place.read(_SELF)
    except OSError:
        return ""
    try:
        return str(json.loads(content)["store"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{_SELF} is not what cosim wrote: {error}") from error
