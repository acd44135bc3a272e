"""Workloads that were built and checked, kept in this process for scenarios that ask for the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.experiment.build import new_workloads
from cosim.experiment.drawn import may_use_seed
from cosim.experiment.scenario import Scenario
from cosim.experiment.sizes import PER_OPERATION_BUILT, check_size
from cosim.files.reads import are_current, note, reading
from cosim.workload.contract import WorkloadSpec
from cosim.workload.draws import draw
from cosim.workload.program import Workload

MOST_OPERATIONS = 1 << 18
"""Operations that kept workloads may have in all: about 150 MB, with what runs look up of them. The one asked
for last may have more."""


@dataclass(frozen=True, eq=False, slots=True)
class _KeptEntry:
    """Workloads, what they were built of, and the state of each file that was read for it."""

    spec: WorkloadSpec
    base: Path
    workloads: list[Workload]
    files: Mapping[str, str]
    operations: int

    def is_of(self, spec: WorkloadSpec) -> bool:
        """Whether it is what ``spec`` builds now."""
        try:  # a class that was written anew has the same name
            return bool(self.spec == spec) and are_current(self.files, self.base)
        except ValueError:  # arrays, which nobody compares
            return False


class KeptWorkloads:
    """Gives workloads of scenarios, and keeps those asked for last, up to :data:`MOST_OPERATIONS`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Any, _KeptEntry] = {}

    @property
    def num_operations(self) -> int:
        """Operations of all workloads that are kept."""
        return sum(one.operations for one in self._entries.values())

    def of(self, scenario: Scenario, number: int) -> list[Workload]:
        """As :func:`new_workloads`; those of an equal entry, where they are kept."""
        job = scenario.jobs[number]
        spec = job.workload
        if not isinstance(spec, WorkloadSpec):
            return new_workloads(scenario, number)
        base = scenario.base.resolve()
        what = repr(spec), job.count if spec.copies_differ else 1, base
        drawn, whatever = (*what, draw(scenario.seed, number)), (*what, None)
        for key in (whatever, drawn):
            with self._lock:
                entry = self._entries.get(key)
            if entry is not None and entry.is_of(spec):
                check_size(spec.size_about() + job.count, "ranks and operations", PER_OPERATION_BUILT)
                note(entry.files, entry.base)
                self._keep(key, entry)
                return entry.workloads if spec.copies_differ else entry.workloads[:1] * job.count
        began = time.time()
        with reading() as read:
            made = new_workloads(scenario, number)
        if not read.unclear and not read.changed_since(began):
            operations = sum(len(one.table) for one in (made if spec.copies_differ else made[:1]))
            entry = _KeptEntry(spec, base, made, read.states(base), operations)
            self._keep(drawn if may_use_seed(spec) else whatever, entry)
        return made

    def _keep(self, key: Any, entry: _KeptEntry) -> None:
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = entry  # the one asked for last is the last
            left = self.num_operations
            for one in [*self._entries][:-1]:
                if left <= MOST_OPERATIONS:
                    break
                left -= self._entries.pop(one).operations


KEPT = KeptWorkloads()
"""Those of this process, for trials of sweeps, searches and studies, and prepared runs."""
