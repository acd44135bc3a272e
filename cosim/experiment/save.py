"""A run as a folder: what :mod:`cosim.results.store` writes, the timeline, and the scenario as resolved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from cosim.errors import ScenarioError
from cosim.files.folder import written_whole

if TYPE_CHECKING:
    from cosim.experiment.scenario import Scenario
    from cosim.experiment.simulate import Run

TIMELINE_FILE = "timeline.json"


def check_messages(scenario: Scenario) -> None:
    """See, before the run and not after it, that its messages can be written.

    Raises
    ------
    InputError
        Parquet without pyarrow.
    """
    from cosim.results.store import check_format

    check_format(scenario.record.messages or None)


def run_files() -> tuple[str, ...]:
    """Every file that a run's folder may have."""
    from cosim.results.store import COLUMNS_FILE, MESSAGE_FILES, SCENARIO_FILE, SUMMARY_FILE

    return SUMMARY_FILE, COLUMNS_FILE, SCENARIO_FILE, TIMELINE_FILE, *MESSAGE_FILES.values()


def write_run(run: Run, target: Path) -> Path:
    """Write everything to a folder that is held (:func:`~cosim.files.folder.claimed`): all of it or nothing.
    An earlier run stays there until then.

    Raises
    ------
    InputError
        The folder can't be written.
    """
    with written_whole(target, run_files()) as part:
        write_files(run, part)
    return target


def write_files(run: Run, folder: Path) -> None:
    """Write everything to a folder that nobody looks at yet.

    Raises
    ------
    InputError
        It can't be written.
    """
    from cosim.results.link_users import note_link_users
    from cosim.results.render.timeline import write_timeline
    from cosim.results.store import SCENARIO_FILE, save

    (folder / SCENARIO_FILE).write_text(resolved_yaml(run.scenario), "utf-8", "backslashreplace")
    write_timeline(run.records, folder / TIMELINE_FILE)
    messages = run.scenario.record.messages
    note_link_users(run.records)
    save(run.records, run.summary, folder, messages=messages or None)


def resolved_yaml(scenario: Scenario) -> str:
    """The scenario with its ``--set`` applied, as YAML that can be run again from the same folder."""
    source = scenario.source
    head = (
        f"---\n# as it was run, --set applied; relative paths start at the folder of {source}\n"
        if source
        else ""
    )
    try:
        value = scenario.as_written()
    except ScenarioError as error:
        return f"# {error.message}\n"
    return head + yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110
    )
