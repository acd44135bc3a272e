"""Profiles of scripts, kept until something that they depend on changes.

::

    CACHE/cosim/profiles/4f0c....yaml   the profile, as ``cosim profile`` writes it
    CACHE/cosim/profiles/4f0c....json   what the script read: files and hashes of their contents

CACHE is ``XDG_CACHE_HOME`` or ``~/.cache``. The name is a hash of the request, of cosim and of all installed
packages' versions. What the script read is known by watching (:mod:`cosim.files.reads`): modules
outside of installed packages, and whatever it opened in the thread that ran it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

from cosim.experiment.store.version import version
from cosim.files.cache import cache_folder, making
from cosim.files.reads import are_current, note
from cosim.profiler import file
from cosim.profiler.launch import ProfileRequest, check
from cosim.profiler.scale import profile_scaled

_log = logging.getLogger("cosim")


def profiled(request: ProfileRequest) -> Path:
    """The file of its profile, made now unless one is kept that still stands for it.

    Raises
    ------
    InputError, WorkloadError
        As :func:`cosim.profiler.launch.profile` does.
    """
    check(request)
    folder = cache_folder("profiles")
    key = hashlib.sha256(json.dumps([_asked(request), version(), _packages()]).encode()).hexdigest()[:32]
    done, read = folder / f"{key}.yaml", folder / f"{key}.json"
    with making(folder / f"{key}.lock", f"the profile of {request.script}", _log.info):
        states, unclear = _states(read) if done.exists() else None, ""
        if states is None or not are_current(states, Path(request.folder)):
            _log.info("%s is profiled: %s ranks", request.script, request.world_size)
            read.unlink(missing_ok=True)
            made, cost = profile_scaled(request, (), (), _log.info)
            states, unclear = dict(cost.read), cost.unclear
            file.write(made, done)
            if unclear:
                _log.warning("the profile of %s is not kept: it %s", request.script, unclear)
            else:
                read.write_text(json.dumps(states, indent=1))
    note(states, Path(request.folder), own=(done, read), unclear=unclear, who=Path(request.script).name)
    return done


def _asked(request: ProfileRequest) -> dict[str, Any]:
    """The request, wherever its folder lies: whether what is read there is the same is looked at."""
    script = request.script if request.module else os.path.relpath(request.script, request.folder)
    return {**request.as_order(), "script": script, "folder": ""}


def _states(read: Path) -> dict[str, str] | None:
    try:
        states: dict[str, str] = json.loads(read.read_text())
    except (OSError, ValueError):
        return None
    return states


@cache
def _packages() -> list[str]:
    """Names and versions of all that is installed."""
    return sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
