"""The plans of a run's collectives: for the whole group, and for the ranks of it that are simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cosim.engine.programs import COLLECTIVES, Group
from cosim.errors import AlgorithmError, WorkloadError
from cosim.kernel import kernel
from cosim.network.flows import FlowTable
from cosim.pattern.contract import Algorithm
from cosim.pattern.plan import FIRST, Plan, Turn
from cosim.pattern.planner import Planner
from cosim.pattern.template import Template
from cosim.units import NEVER
from cosim.workload.program import Operation

if TYPE_CHECKING:
    from cosim.engine.folding.template import Grid

By = str | Algorithm
"""What carries a collective: a name, or the algorithm itself; empty: as the run has it."""


class Plans:
    """Asks the planner; folds."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._others: dict[tuple[str, By], Planner] = {}
        self._folded: dict[tuple[int, Grid], Plan] = {}

    def whole(self, operation: Operation, group: Group, turn: Turn = FIRST, algorithm: By = "") -> Plan:
        """The plan of a group's operation, carried by an algorithm, or as the run has it.

        Raises
        ------
        WorkloadError
            There is no such collective.
        AlgorithmError
            It has more parts than flow keys can tell apart, or as the planner says.
        """
        kind = COLLECTIVES.get(operation.collective)
        if kind is None:
            known = ", ".join(sorted(COLLECTIVES))
            raise WorkloadError(
                f"operation {operation.name!r}: no collective {operation.collective!r}",
                hint=f"there are {known}",
            )
        plan = self._by(operation.collective, algorithm).plan(
            kind,
            len(group.members),
            operation.size_bytes,
            root=operation.root,
            dims=group.dims,
            turn=turn,
            endpoints=tuple(group.endpoints.tolist()),
        )
        phases = len(plan.chunks[0]) if plan.chunks else 0
        if len(plan.chunks) * phases > kernel.REQUEST_PART:
            raise AlgorithmError(
                f"operation {operation.name!r}: {len(plan.chunks)} chunks of {phases} phases are more than "
                f"the {kernel.REQUEST_PART} that flow keys can tell apart",
                hint=f"set collectives.splits to {kernel.REQUEST_PART // phases} or less",
            )
        return plan

    def _by(self, collective: str, algorithm: By) -> Planner:
        if not algorithm:
            return self._planner
        if (collective, algorithm) not in self._others:
            self._others[collective, algorithm] = self._planner.with_algorithm(collective, algorithm)
        return self._others[collective, algorithm]

    def simulated(self, plan: Plan, group: Group) -> Plan:
        """The plan for a group's representatives."""
        if group.grid is None:
            return plan
        key = (id(plan), group.grid)
        if key not in self._folded:
            from cosim.engine.folding.template import fold_plan

            folded = fold_plan(plan, group.grid)
            assert isinstance(folded, Plan), folded  # the search for the folding has tried it
            self._folded[key] = folded
        return self._folded[key]


def flow_table_of(template: Template) -> FlowTable:
    """A template's messages as flows. The engine waits for the exits alone, which are the last block."""
    reaction = np.full(len(template.src), NEVER, np.int64)
    reaction[int(template.block_row[-2]) :] = 0
    return FlowTable(
        num_participants=template.num_participants,
        src=template.src,
        dst=template.dst,
        size_bytes=template.bytes,
        channel=template.channel,
        delay_ps=template.delay_ps,
        reaction_ps=reaction,
        dep_ptr=template.dep_ptr,
        dep_distance=template.dep_distance,
        dep_kind=template.dep_kind,
        block_row=template.block_row,
        block_repeat=template.block_repeat,
    )
