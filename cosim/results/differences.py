"""What differs between two runs, in words: each job's iteration, what became exposed, which links changed.

What the words are about is the critical path of each job's last iteration: a part that got longer there is
what the iteration waits for. That the part causes the difference is likely and not proved: only a run
without it would say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosim.results.critical_path import COMPUTE, MEMORY, REMOTE
from cosim.results.path_parts import PathPart
from cosim.results.render.text import percent
from cosim.results.summary import Summary
from cosim.units import format_time

Links = Mapping[str, float]
"""By link name: the share of the run in which it was busy."""

_MOST_PARTS = 5
_MOST_LINKS = 3
_SMALL = 0.005
"""The least difference of an iteration, or of a link's time, that is worth a line."""


@dataclass(frozen=True)
class Explanation:
    """One sentence, and lines that say more."""

    sentence: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class RunFacts:
    """What a run tells: of each job by name what its critical path is made of, how busy links were, and
    which jobs used those that several did.
    """

    summary: Summary
    paths: Mapping[str, Sequence[PathPart]]
    links: Links
    shared: Mapping[str, Sequence[str]]


def differences(a: RunFacts, b: RunFacts) -> Explanation:
    """In words what b has that a had not."""
    jobs = {job.name: job for job in a.summary.jobs}
    sentences, lines = [], list[str]()
    for job in b.summary.jobs:
        before = jobs.get(job.name)
        if before is None or before.iteration_mean_ps is None or job.iteration_mean_ps is None:
            continue
        one, other = before.iteration_mean_ps, job.iteration_mean_ps
        parts = a.paths.get(job.name, ()), b.paths.get(job.name, ())
        big = [change for change in _changes(*parts) if abs(change.by_ps) > _SMALL * max(one, other)]
        sentences.append(_sentence(job.name, one, other, big))
        prefix = f"{job.name}: " if len(b.summary.jobs) > 1 else ""
        lines += [f"{prefix}{change}" for change in big[:_MOST_PARTS]]
    lines += _links(a, b)
    return Explanation(" ".join(sentences) or "The runs have no job in common.", tuple(lines))


def _sentence(name: str, one: int, other: int, changes: Sequence[_Change]) -> str:
    if one == other:
        return f"{name} takes the same time, {format_time(one)} an iteration."
    more = "less" if other < one else "more"
    times = f"{format_time(other)} instead of {format_time(one)}, {_signed_percent((other - one) / one)}"
    said = f"{name} takes {format_time(abs(other - one))} {more} an iteration in b ({times})"
    same_way = [change for change in changes if (change.by_ps < 0) == (other < one)]
    return f"{said}, most of it {same_way[0].what} ({same_way[0].signed})." if same_way else f"{said}."


def _signed_percent(share: float) -> str:
    return f"{'-' if share < 0 else '+'}{percent(abs(share))}"


@dataclass(frozen=True)
class _Change:
    """A part of the critical path in both runs; 0: it is not there."""

    kind: str
    what: str
    a_ps: int
    b_ps: int

    @property
    def by_ps(self) -> int:
        return self.b_ps - self.a_ps

    @property
    def signed(self) -> str:
        """``+3.1 ms``."""
        return f"{'-' if self.by_ps < 0 else '+'}{format_time(abs(self.by_ps))}"

    def __str__(self) -> str:
        computes = self.kind in (COMPUTE, MEMORY, REMOTE)
        if not self.a_ps:
            return f"{self.what} is {'there' if computes else 'exposed'} now: {self.signed}"
        if not self.b_ps:
            return f"{self.what} is {'gone' if computes else 'hidden'} now: {self.signed}"
        times = f"{format_time(self.b_ps)} instead of {format_time(self.a_ps)}"
        return f"{self.what} takes {times}: {self.signed}"


def _changes(a: Sequence[PathPart], b: Sequence[PathPart]) -> list[_Change]:
    """Parts of the critical path that changed, those that changed most first."""
    before, after = ({(part.kind, part.what): part.time_ps for part in parts} for parts in (a, b))
    if not before or not after:
        return []
    changes = [_Change(*key, before.get(key, 0), after.get(key, 0)) for key in {**before, **after}]
    return sorted(changes, key=lambda change: (-abs(change.by_ps), change.kind, change.what))


def _links(a: RunFacts, b: RunFacts) -> list[str]:
    """The busiest links of either run whose use changed most, the shared ones first."""
    names = dict.fromkeys(link.name for run in (a, b) for link in run.summary.links)
    both = [(b.links[name] - a.links[name], name) for name in names if name in a.links and name in b.links]
    both = [(change, name) for change, name in both if abs(change) > _SMALL]
    both.sort(key=lambda change: (change[1] not in b.shared, -abs(change[0]), change[1]))
    lines = []
    for _, name in both[:_MOST_LINKS]:
        users = f", shared by {' and '.join(b.shared[name])}" if name in b.shared else ""
        lines.append(f"{name} is {percent(b.links[name])} busy, was {percent(a.links[name])}{users}")
    return lines
