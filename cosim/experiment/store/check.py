"""Some of a store's runs, run again: whether it tells the truth."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

from cosim.errors import CosimError
from cosim.experiment.run import run
from cosim.experiment.scenario import loads
from cosim.experiment.store.entry import StoreEntry
from cosim.experiment.store.question import question_of
from cosim.files.reads import are_current


def check_sample(entries: Sequence[StoreEntry], count: int) -> tuple[int, list[tuple[str, str, str]]]:
    """Run up to ``count`` entries again that answer a question as things stand, in a random order.

    Returns
    -------
    How many were run, and (id, digest, digest or error now) of each that differs.
    """
    checked, differ = 0, []
    for entry in random.sample(entries, len(entries)):
        if checked == count:
            break
        base = Path(entry.base)
        if not entry.base or not are_current(entry.files, base):
            continue
        try:
            scenario = loads(json.dumps(entry.settings), base=base, name=entry.name)
            if question_of(scenario).key != entry.id.partition("-")[0]:  # of another version
                continue
            now = run(scenario, allow_large=True).digest
        except CosimError as error:
            now = "" if entry.error else f"{type(error).__name__}: {error}"
        checked += 1
        if now != entry.digest:
            differ.append((entry.id, entry.digest or "none", now or "none"))
    return checked, differ
