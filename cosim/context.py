"""What everything that a scenario names is built in: where its files lie, and what it may draw from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Context:
    """Given to every ``build(context)``.

    Attributes
    ----------
    base
        The folder that relative paths start from: the scenario's.
    seed
        Of everything random that has no seed of its own: the scenario's; a workload's is that of its job.
    copy
        Which of the jobs of a ``count`` a workload is built for, from 0.
    """

    base: Path = Path()
    seed: int = 0
    copy: int = 0


HERE = Context()
"""The working folder, seed 0: where no scenario is."""
