"""One run, found in a store as the folder that ``cosim run --out`` writes, or put there."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.errors import CosimError, InputError
from cosim.experiment.save import run_files, write_files
from cosim.experiment.store.question import Question, question_of
from cosim.experiment.store.runs import Keeper, RunStore, kept, open_store, whole_parts
from cosim.files.folder import claimed, written_whole
from cosim.files.reads import Reads, reading
from cosim.results.store import COLUMNS_FILE, SUMMARY_FILE
from cosim.results.stored_run import StoredRun, load_run

if TYPE_CHECKING:
    from cosim.experiment.scenario import Scenario
    from cosim.experiment.simulate import Run

_log = logging.getLogger("cosim")


def through_store(
    place: str | Path,
    scenario: Scenario,
    out: str | Path | None,
    make: Callable[[], Run],
    *,
    again: bool,
    overwrite: bool,
) -> Run | StoredRun:
    """The run that a store has, copied to ``out``, or else one that is made and kept there.

    ``again``: made, whatever the store has.

    Raises
    ------
    InputError
        The store can't be read, or ``out`` can't be written; or as ``make`` says.
    """
    store = open_store(place)
    found = None if again else _stored(store, scenario, out, overwrite)
    if found is not None:
        return found
    began = time.time()
    with reading() as read:
        done = make()
    _keep(store, done, read, began)
    return done


def _stored(store: RunStore, scenario: Scenario, out: str | Path | None, overwrite: bool) -> StoredRun | None:
    """The run of a scenario, as the store has it, copied to ``out``; None where it isn't there as a whole."""
    question = _question(scenario)
    entry = None if question is None else store.find(question, parts=(SUMMARY_FILE, COLUMNS_FILE))
    if entry is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="cosim-"))
    try:
        store.copy(entry, folder)
        run = load_run(folder)
    except InputError as error:
        shutil.rmtree(folder)
        _log.warning("%s; it is run again", error)
        return None
    run = replace(run, summary=replace(run.summary, name=scenario.name))
    weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)
    _log.info("from the store %s, where it is %s", store.address, entry.id)
    for warning in run.summary.warnings:
        _log.warning(warning)
    if out is not None:
        with (
            claimed(out, run_files(), inputs=scenario.files, overwrite=overwrite) as target,
            written_whole(target, run_files()) as part,
        ):
            store.copy(entry, part)
        _log.info("written to %s", out)
    return run


def _keep(store: RunStore, run: Run, reads: Reads, began_s: float) -> None:
    """Put a run into the store, as a whole; a warning says where that can't be done."""
    question = _question(run.scenario)
    if question is None or run.interrupted or reads.changed_since(began_s):
        return
    if reads.unclear:
        _log.warning("not in the store: %s %s", reads.who, reads.unclear)
        return
    Keeper(store).keep(
        kept(
            question,
            run.scenario.name,
            run.summary,
            reads.states(question.base),
            time.time() - began_s,
            parts=whole_parts(lambda folder: write_files(run, folder)),
        )
    )


def _question(scenario: Scenario) -> Question | None:
    try:
        return question_of(scenario)
    except CosimError as error:
        _log.warning("not in the store: %s", error)
        return None
