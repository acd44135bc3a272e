"""What matters: the scenario again for each rate, time and efficiency in it, with 1 % more of that.

Tried are the rates and times of the topology, the network and the algorithms of the collectives that occur,
the efficiencies of the jobs' GPUs (one for each kind of kernel among them), the times of their hosts, the
busiest links by themselves and, where the topology's settings have no rate (a system by its data sheet, a
file), all links of a rate together. What is discrete (an algorithm's choice by size, a hash's path) may flip
or not at 1 %: the number is of this step, not of the limit. Not tried: sizes, counts, thresholds, and what a
plug-in keeps to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import log
from typing import Any, TypeVar, get_args

import numpy as np
from pydantic.fields import FieldInfo

from cosim.engine.records import JobInfo
from cosim.experiment.build import build, fabric
from cosim.experiment.scenario import Scenario
from cosim.experiment.studies.contract import Study, StudyRounds, StudyRun
from cosim.gpu.contract import GpuSpec
from cosim.host.contract import HostSpec
from cosim.pattern.template import Collective
from cosim.results.sensitivity import Sensitivity, WhatMatters
from cosim.results.summary import Summary
from cosim.spec import RateBps, Spec, TimePs
from cosim.topology.graph import Topology
from cosim.topology.scale_up import host_shape
from cosim.units import format_rate, format_time
from cosim.workload.contract import WorkloadSpec

STEP = 0.01
_LINKS = 3
"""So many of the busiest links are tried by themselves."""
_RATES: dict[Any, Callable[[Any], str]] = {get_args(RateBps)[1]: format_rate}
_UNITS = {**_RATES, get_args(TimePs)[1]: format_time}

Path = tuple[str | int, ...]
SpecT = TypeVar("SpecT", bound=Spec)


@dataclass(frozen=True)
class _Lever:
    """A setting, its value as people read it, and the scenario with 1 % more of it."""

    setting: str
    value: str
    scenario: Scenario
    step: float = STEP


class WhatMattersStudy(Study):
    """What moves the iteration most: a run for each rate, time and efficiency, with 1 % more of it"""

    def ask(self, scenario: Scenario) -> StudyRounds:
        """Ask for the scenario, and then for one with 1 % more of each."""
        [summary] = yield [StudyRun(scenario.name, scenario)]
        if summary is None:
            raise KeyboardInterrupt
        plain = _plain(scenario)
        levers = [
            *_levers(plain, {one.collective for one in summary.collectives}),
            *_all_links(plain),
            *_links(plain, summary),
        ]
        before, base = build(plain).jobs, _means(summary)
        moving = {
            number: StudyRun(f"1 % more of {lever.setting}", lever.scenario)
            for number, lever in enumerate(levers)
            if lever.scenario.jobs == plain.jobs or _take_other_times(before, build(lever.scenario).jobs)
        }
        answers = yield [*moving.values()]
        after = dict(zip(moving, answers, strict=True))
        found = []
        for number, lever in enumerate(levers):
            answer = after.get(number, summary)
            if answer is not None:
                means = _means(answer)
                moved = {
                    job: log(means[job] / base[job]) / log(1 + lever.step) for job in base if job in means
                }
                each = {job: moves + 0.0 for job, moves in moved.items()}
                found.append(Sensitivity(lever.setting, lever.value, each))
        found.sort(key=lambda one: -one.most)
        ran = sum(answer is not None for answer in answers)
        return WhatMatters(tuple(found), ran, "KeyboardInterrupt" if ran < len(answers) else "")


def _means(summary: Summary) -> dict[str, float]:
    return {job.name: job.iteration_mean_ps for job in summary.jobs if job.iteration_mean_ps}


def _plain(scenario: Scenario) -> Scenario:
    """The same scenario, its GPUs and hosts built, its algorithms named, so that each has its numbers."""
    jobs = []
    for job in scenario.jobs:
        workload = job.workload
        if isinstance(workload, WorkloadSpec):
            parts = (("gpu", workload.runs_on(scenario.context)), ("host", workload.issued_by()))
            for name, given in parts:
                if isinstance(given, GpuSpec | HostSpec):
                    workload = _changed(workload, name, given.build(scenario.context))
        jobs.append(job.model_copy(update={"workload": workload}))
    shape = host_shape(fabric(scenario))
    named = scenario.collectives if shape is None else scenario.collectives.on_hosts(shape)
    return scenario.model_copy(update={"jobs": tuple(jobs), "collectives": named})


def _levers(scenario: Scenario, occur: Set[str]) -> Iterator[_Lever]:
    """Every rate, time and efficiency that the scenario's parts say; ``occur``: collectives of the run."""
    skipped = {kind.value for kind in Collective} - occur
    for start in ("topology", "network", "collectives"):
        for path, value, shown in _quantities(getattr(scenario, start), (start,)):
            if len(path) < 2 or path[1] not in skipped:
                yield _lever(scenario, path, value, shown)
    for number, job in enumerate(scenario.jobs):
        for where in _of_gpu(job.workload):
            part = _at(job.workload, where)
            for path, value, shown in _quantities(part, ("jobs", number, "workload", *where), fractions=True):
                yield _lever(scenario, path, value, shown)


def _of_gpu(workload: object) -> list[Path]:
    """Where a workload has its GPU's efficiency, and the host that issues its operators."""
    named = isinstance(workload, WorkloadSpec) and workload.issued_by() is not None
    host: Path = ("host",) if named else ("gpu", "host")
    return [where for where in (("gpu", "efficiency"), host) if isinstance(_at(workload, where), Spec)]


def _at(part: object, path: Path) -> object:
    return part if part is None or not path else _at(getattr(part, str(path[0]), None), path[1:])


def _lever(scenario: Scenario, path: Path, value: float, shown: str) -> _Lever:
    beyond_one = value <= 1 < value * (1 + STEP)  # a share can't be more than all: then 1 % less
    more = value * (1 - STEP if beyond_one else 1 + STEP)
    changed = round(more) if isinstance(value, int) else more
    name = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")
    return _Lever(name, shown, _with(scenario, path, changed), changed / value - 1)


def _quantities(
    value: Any, path: Path, *, fractions: bool = False, units: Mapping[Any, Callable[[Any], str]] = _UNITS
) -> Iterator[tuple[Path, float, str]]:
    """Positive rates and times below a spec, with ``fractions`` plain numbers too: path, value, as shown."""
    if isinstance(value, tuple):
        for number, each in enumerate(value):
            yield from _quantities(each, (*path, number), fractions=fractions, units=units)
    if not isinstance(value, Spec):
        return
    for name, field in type(value).model_fields.items():
        own = getattr(value, name)
        shown = units.get(_unit(field))
        if isinstance(own, Spec | tuple):
            yield from _quantities(own, (*path, name), fractions=fractions, units=units)
        elif isinstance(own, bool) or not isinstance(own, int | float) or own <= 0:
            continue
        elif shown is not None and round(own * (1 + STEP)) != own:
            yield (*path, name), own, shown(own)
        elif fractions and isinstance(own, float):
            yield (*path, name), own, f"{own:g}"


def _unit(field: FieldInfo) -> Any:
    """What parses a field, if it is a rate or a time; also where it may be left out."""
    parsers = [*field.metadata, *(inner for part in get_args(field.annotation) for inner in get_args(part))]
    return next((one for one in parsers if one in _UNITS), None)


def _with(part: Any, path: Path, value: float) -> Any:
    """A copy with one value changed, everything else as it was."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(key, int):
        return (*part[:key], _with(part[key], rest, value), *part[key + 1 :])
    return _changed(part, key, _with(getattr(part, key), rest, value))


def _changed(spec: SpecT, key: str, value: object) -> SpecT:
    """A copy with one field changed, and nothing kept that was computed from the others."""
    copy = spec.model_copy(update={key: value})
    for computed in copy.__dict__.keys() - type(spec).model_fields.keys():
        del copy.__dict__[computed]  # a cached property
    return copy


def _all_links(scenario: Scenario) -> Iterator[_Lever]:
    """All links of a rate together, where no setting of the topology is one; scale-up links apart."""
    if any(True for _ in _quantities(scenario.topology, (), units=_RATES)):
        return
    topology = fabric(scenario)
    scale_up = np.zeros(topology.num_links, bool) if topology.scale_up is None else topology.scale_up
    kinds = zip(scale_up.tolist(), topology.link_rate_bps.tolist(), strict=True)
    for (inside, rate_bps), count in sorted(Counter(kinds).items(), reverse=True):
        alike = (scale_up == inside) & (topology.link_rate_bps == rate_bps)
        rates = np.where(alike, rate_bps * (1 + STEP), topology.link_rate_bps)
        name = f"all {count} {'scale-up links' if inside else 'links'}"
        yield _Lever(name, format_rate(rate_bps), _on(scenario, replace(topology, link_rate_bps=rates)))


def _on(scenario: Scenario, topology: Topology) -> Scenario:
    return scenario.model_copy(update={"topology": topology})


def _links(scenario: Scenario, summary: Summary) -> Iterator[_Lever]:
    """The busiest links, one by one; not of a folded run, whose links come in classes."""
    if any(job.folding for job in summary.jobs):
        return
    topology = fabric(scenario)
    for link in summary.links[:_LINKS]:
        rates = topology.link_rate_bps.copy()
        rates[link.link] *= 1 + STEP
        changed = _on(scenario, replace(topology, link_rate_bps=rates))
        yield _Lever(f"link {link.name}", format_rate(link.rate_bps), changed)


def _take_other_times(before: Sequence[JobInfo], after: Sequence[JobInfo]) -> bool:
    """Whether any operation differs; if none does, a GPU's number is of kernels that don't occur."""
    return any(
        list(one.operations) != list(other.operations)
        for a, b in zip(before, after, strict=True)
        for one, other in zip(a.workload.programs, b.workload.programs, strict=True)
    )
