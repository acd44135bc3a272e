"""Runs and sweeps in a folder and below, as a list: which there are, what came of each, which are under
way.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from cosim.errors import InputError
from cosim.files.folder import PROGRESS_FILE, settle
from cosim.results.render.text import percent
from cosim.results.report.sweep_data import TRIALS, load_sweep
from cosim.results.store import COLUMNS_FILE, SUMMARY_FILE
from cosim.results.stored_run import load_run
from cosim.units import format_time

MOST_SETTINGS = 6
MOST_DEEP = 4
"""Levels of folders that are looked into."""


@dataclass(frozen=True)
class FoundFolder:
    """``name`` is its path below the folder that is listed, ``said`` what it is in a line; of a run also its
    jobs' mean iterations, the first of them in picoseconds, the share of the jobs' time that waits for
    communication, the digest, and what was set, by its path. Runs of one ``scenario`` are set
    beside one another.
    """

    name: str
    path: Path
    kind: Literal["run", "sweep", "under way", "broken"]
    said: str
    changed_s: float
    iteration: str = ""
    iteration_ps: float = 0.0
    exposed: str = ""
    digest: str = ""
    scenario: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


def found_in(root: Path) -> list[FoundFolder]:
    """Runs and sweeps, the newest first.

    Raises
    ------
    InputError
        There is no such folder.
    """
    if not root.is_dir():
        raise InputError(f"there is no folder {str(root)!r}")
    found = [_found(root, folder) for folder in _folders(root, MOST_DEEP)]
    return sorted((one for one in found if one), key=lambda one: (-one.changed_s, one.name))


def _folders(folder: Path, deep: int) -> Iterator[Path]:
    yield folder
    if deep:
        try:
            below = sorted(one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
        except OSError:
            return
        for one in below:
            if not one.is_symlink():  # nothing outside of the folder is shown
                yield from _folders(one, deep - 1)


def _found(root: Path, folder: Path) -> FoundFolder | None:
    name = str(folder.relative_to(root))
    try:
        settle(folder)
        if (folder / SUMMARY_FILE).is_file() and (folder / COLUMNS_FILE).is_file():
            file = folder / SUMMARY_FILE
            return _of_run(name, folder, file.stat().st_mtime)
        if (folder / TRIALS).is_file():
            sweep, file = load_sweep(folder), folder / TRIALS
            return FoundFolder(name, folder, "sweep", f"{len(sweep.runs)} runs", file.stat().st_mtime)
        if _is_claimed(folder):
            return FoundFolder(name, folder, "under way", _how_far(folder), folder.stat().st_mtime)
    except InputError as error:
        return FoundFolder(name, folder, "broken", str(error), 0.0)
    except OSError:  # it went away meanwhile
        pass
    return None


@lru_cache(maxsize=1024)
def _of_run(name: str, folder: Path, changed_s: float) -> FoundFolder:
    """The same as long as its summary is: a list is looked at every few seconds."""
    run = load_run(folder)
    summary = run.summary
    jobs = [(job.name, job.iteration_mean_ps) for job in summary.jobs if job.iteration_mean_ps is not None]
    times = [f"{job} {format_time(ps)}" for job, ps in jobs[:4]]
    iteration = ", ".join(times) + (f" and {len(jobs) - 4} more" if len(jobs) > 4 else "")
    said = f"{summary.name or 'run'} on {summary.topology}, {summary.network}"
    shares = [job.exposed.share for job in summary.jobs if job.iterations_done]
    exposed = percent(sum(shares) / len(shares)) if shares else ""
    asked = run.settings if isinstance(run.settings, dict) else {}
    settings = dict(_flat("", {key: one for key, one in asked.items() if key != "description"}))
    return FoundFolder(
        name,
        folder,
        "run",
        said,
        changed_s,
        iteration,
        jobs[0][1] if jobs else 0.0,
        exposed,
        summary.digest[:12],
        summary.name,
        settings,
    )


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _flat(f"{path}.{key}" if path else str(key), one)
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for k, one in enumerate(value):
            yield from _flat(f"{path}[{k}]", one)
    else:
        yield path, str(value)


def set_differently(found: Sequence[FoundFolder]) -> dict[str, str]:
    """What runs of a scenario set differently, by a run's name; at most :data:`MOST_SETTINGS` of each."""
    out = {}
    for scenario in {one.scenario for one in found if one.settings}:
        runs = [one for one in found if one.settings and one.scenario == scenario]
        paths = dict.fromkeys(path for one in runs for path in one.settings)
        differ = [path for path in paths if len({one.settings.get(path) for one in runs}) > 1]
        for one in runs:
            mine = [f"{path}={one.settings[path]}" for path in differ if path in one.settings]
            left = f", {len(mine) - MOST_SETTINGS} more" if len(mine) > MOST_SETTINGS else ""
            out[one.name] = ", ".join(mine[:MOST_SETTINGS]) + left
    return out


def _how_far(folder: Path) -> str:
    """What the run says of itself; nothing where it didn't yet."""
    try:
        told = json.loads((folder / PROGRESS_FILE).read_text("utf-8"))
        share = f"{percent(told['done'] / told['total'])}: " if told["total"] else ""
        return f"{share}{told['text']}"
    except (OSError, ValueError, TypeError, KeyError):  # it has just gone, or isn't ours
        return ""


def _is_claimed(folder: Path) -> bool:
    """Whether a run holds the folder, as :func:`cosim.files.folder.claimed` does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(handle)
    return False
