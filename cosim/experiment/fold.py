"""Whether a run folds its ranks: what the scenario asks for, and what can be proved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cosim.engine.records import JobInfo
from cosim.errors import ScenarioError
from cosim.experiment.build import Built
from cosim.experiment.scenario import Scenario

if TYPE_CHECKING:
    from cosim.engine.folding.folding import Folding

AUTO_RANKS = 256
"""``fold: auto`` looks at jobs with more ranks than this; smaller ones are fast as they are."""


def fold(
    scenario: Scenario, built: Built, *, messages: bool = False
) -> tuple[tuple[JobInfo, ...], tuple[str, ...]]:
    """The jobs to simulate, and lines that say what was folded and why the rest was not.

    Where all ``messages`` are asked for, or queues and rates, nothing is folded.

    Raises
    ------
    ScenarioError
        ``fold: always``, but nothing can be folded; says why.
    """
    always = scenario.fold == "always"
    large = max(job.workload.world_size for job in built.jobs) > AUTO_RANKS
    if scenario.fold == "never" or not (always or large):
        return built.jobs, ()
    found: Folding | None = None
    by = "the caller" if scenario.record.messages is False else "record.messages"
    reasons: tuple[str, ...] = (f"{by} asks for every message",)
    if scenario.record.queues or scenario.record.rates:
        reasons = ("record asks for queues or rates, which are those of every link and rank",)
    elif not messages:
        network = built.network.describe()
        from cosim.engine.folding.find import find_folding

        found, reasons = find_folding(
            built.topology, network, built.jobs, built.planner, only_if_cheaper=not always
        )
    if found is None:
        if always:
            raise ScenarioError(
                "no ranks can be folded: " + "; ".join(reasons),
                location=scenario.locate("fold"),
                hint="set fold to auto or never, and every rank is simulated",
            )
        return built.jobs, tuple(f"not folded: {reason}" for reason in reasons)
    return (found.job,), (f"folded {found}", *(f"not folded: {reason}" for reason in reasons))
