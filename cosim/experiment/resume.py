"""Going on with a run that broke off: the folder of ``--out`` holds its scenario and its injection log.

Only a run over a simulator elsewhere has a log (see :mod:`cosim.protocol.replay_log`); what runs in this
process is as fast run again. Both files go when the run has ended and its results are written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cosim.errors import InputError, Location
from cosim.files.folder import disown, own

if TYPE_CHECKING:
    from cosim.experiment.scenario import Scenario
    from cosim.network.simulator import NetworkSimulator

LOG_FILE = "injections.log"
UNFINISHED_FILE = "unfinished.json"
UNFINISHED_FILES = UNFINISHED_FILE, LOG_FILE


def keep_log(network: NetworkSimulator, scenario: Scenario, directory: str | Path) -> None:
    """Have the network's log kept in the folder of the run, where it has one, and the scenario beside it."""
    target = Path(directory)
    elsewhere = _elsewhere(network)
    if elsewhere is None:
        return
    content = {
        "name": scenario.name,
        "base": str(scenario.base.resolve()),
        "scenario": scenario.as_written(),
    }
    own(target, UNFINISHED_FILES)
    (target / UNFINISHED_FILE).write_text(json.dumps(content, indent=1), encoding="utf-8")
    elsewhere.log_to(target / LOG_FILE)


def load_unfinished(directory: str | Path) -> Scenario:
    """The scenario of a run that broke off.

    Raises
    ------
    InputError
        No such run there.
    """
    from cosim.experiment.scenario import loads

    target = Path(directory)
    try:
        content: dict[str, Any] = json.loads((target / UNFINISHED_FILE).read_text(encoding="utf-8"))
        scenario, base, name = content["scenario"], Path(content["base"]), str(content["name"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise InputError(
            "no unfinished run here",
            location=Location(str(target)),
            hint="a run over a simulator elsewhere, with --out, leaves one when it breaks off",
        ) from None
    return loads(yaml.safe_dump(scenario, sort_keys=False), base=base, name=name)


def go_on(network: NetworkSimulator, directory: str | Path) -> None:
    """Have the network answer from the log until that ends; from the beginning where there is none yet.

    Raises
    ------
    InputError
        Nothing here has a log: the scenario's network is no simulator elsewhere.
    """
    elsewhere = _elsewhere(network)
    if elsewhere is None:
        raise InputError("this run's network keeps no log", location=Location(str(directory)))
    log = Path(directory) / LOG_FILE
    elsewhere.log_to(log, resume=log.exists())  # it may have broken off while its jobs were profiled


def finished(directory: str | Path) -> None:
    """The results are written: what was kept for going on is not needed any more."""
    target = Path(directory)
    if (target / UNFINISHED_FILE).exists():
        for name in UNFINISHED_FILES:
            (target / name).unlink(missing_ok=True)
        disown(target, UNFINISHED_FILES)


def _elsewhere(network: NetworkSimulator) -> NetworkSimulator | None:
    """The one that keeps a log: the network, or one of those that it is made of."""
    return next((part for part in network.parts() if part.elsewhere), None)
