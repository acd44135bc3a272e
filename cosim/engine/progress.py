"""How far a run is, as it is told to whoever wants to know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgressInfo:
    """Times are picoseconds; ``messages`` have arrived."""

    now_ps: int
    operations_done: int
    operations_total: int
    messages: int
