"""How many iterations of a rank are open at once, and the slots that they go round in.

Where no operation looks back more than ``lag`` iterations, a rank has up to ``lag + 1`` of them open: one
begins when all but the ``lag`` before it have ended. What ends may let operations of iterations follow that
are to begin yet, up to ``lag`` further; so there are ``2 * lag + 1`` slots, and iteration i is in slot i
modulo that. A slot is reset when its iteration has ended, which is before anything of the next one there can
be let follow: what could, begins later. Without lags there is one slot.
"""

from __future__ import annotations

from dataclasses import dataclass

from cosim.workload.table import OperationTable


@dataclass(frozen=True, slots=True)
class Slots:
    """Of a job: ``open`` iterations at once, in ``count`` slots."""

    open: int
    count: int


def slots_of(table: OperationTable) -> Slots:
    """What the longest lag of a job's operations needs."""
    lag = table.longest_lag
    return Slots(lag + 1, 2 * lag + 1)
