"""A run as a folder: what :mod:`cosim.results.store` writes, the timeline, and the scenario as resolved."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from cosim.errors import InputError, Location, ScenarioError

if TYPE_CHECKING:
    from cosim.experiment.scenario import Scenario
    from cosim.experiment.simulate import Run

TIMELINE_FILE = "timeline.json"


def prepare(directory: str | Path, scenario: Scenario) -> None:
    """Make the folder, so that what can't be written is known before the run and not after it.

    Raises
    ------
    InputError
        A folder that can't be made or written to, or Parquet without pyarrow.
    """
    from cosim.results.store import check_format

    make_folder(directory)
    check_format(scenario.record.messages or None)


def make_folder(directory: str | Path) -> Path:
    """A folder that can be written to.

    Raises
    ------
    InputError
        It can't be.
    """
    target = Path(directory)
    if target.exists() and not target.is_dir():
        raise InputError("is a file; the run is written to a folder", location=Location(str(target)))
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target):
            pass
    except OSError as error:
        raise _cannot(target, error) from error
    return target


def _cannot(target: Path, error: OSError) -> InputError:
    return InputError(f"can't write the run: {error.strerror or error}", location=Location(str(target)))


def save_run(run: Run, directory: str | Path) -> Path:
    """Write everything; files of an earlier run in the folder are replaced.

    Raises
    ------
    InputError
        The folder can't be written.
    """
    from cosim.results.render.timeline import write_timeline
    from cosim.results.store import SCENARIO_FILE, save

    target = Path(directory)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / SCENARIO_FILE).write_text(resolved_yaml(run.scenario), encoding="utf-8")
        write_timeline(run.records, target / TIMELINE_FILE)
    except OSError as error:
        raise _cannot(target, error) from error
    messages = run.scenario.record.messages
    save(run.records, run.summary, target, messages=messages or None)
    return target


def resolved_yaml(scenario: Scenario) -> str:
    """The scenario with its ``--set`` applied, as YAML that can be run again from the same folder."""
    source = scenario.source
    head = (
        f"# as it was run, --set applied; relative paths start at the folder of {source}\n" if source else ""
    )
    try:
        value = scenario.as_written()
    except ScenarioError as error:
        return f"# {error.message}\n"
    return head + yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
