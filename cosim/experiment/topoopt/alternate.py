"""Topology for a parallelism, parallelism for that topology, and again until nothing improves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosim.engine.programs import ready_job
from cosim.errors import AlgorithmError, InputError
from cosim.experiment.build import build
from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario, load
from cosim.experiment.topoopt.demand import ServerDemand, demand_of
from cosim.experiment.topoopt.links import SharedLinks, share_links
from cosim.units import format_time, parse_rate

_AXES = ("tp", "pp", "dp")
_LONG = {"tp": "tensor_parallel", "pp": "pipeline_parallel", "dp": "data_parallel"}
_RINGED = ("all_reduce", "all_gather", "reduce_scatter")
_ALGORITHMS: tuple[Any, ...] = ("multi_ring", {"algorithm": "ring", "channels": 2, "bidirectional": True})
"""By strides that groups have links for; where some group has none, both ways round."""
_ROUNDS = 16

Split = tuple[int, ...]
"""Ranks along tp, pp and dp; empty where the workload doesn't say."""


@dataclass(frozen=True, slots=True)
class TriedLinks:
    """A scenario, and picoseconds that it takes for a sample."""

    split: Split
    links: SharedLinks
    settings: Mapping[str, Any]
    iteration_ps: float
    samples: int

    @property
    def sample_ps(self) -> float:
        """What is made less: parallelisms may differ in samples of an iteration."""
        return self.iteration_ps / self.samples

    def __str__(self) -> str:
        axes = ", ".join(f"{axis} {size}" for axis, size in zip(_AXES, self.split, strict=False))
        strides = ", ".join(map(str, self.links.strides)) or "none"
        return (
            f"{axes + ': ' if axes else ''}strides {strides}, {len(self.links.pairs)} pairs: "
            f"{format_time(round(self.iteration_ps))} an iteration"
            f"{f' of {self.samples} samples' if self.samples > 1 else ''}"
        )


@dataclass
class TopoOpt:
    """The search: a scenario of one job, of whose GPUs each is a server.

    ``rate`` and ``latency`` as a scenario has them; ``say`` is told what was found, line by line.
    """

    scenario: Path
    settings: tuple[str, ...]
    degree: int
    rate: str
    latency: str
    say: Callable[[str], None]
    _known: dict[object, TriedLinks | None] = field(default_factory=dict, init=False)
    _demands: dict[Split, ServerDemand] = field(default_factory=dict, init=False)

    def search(self) -> tuple[TriedLinks, Scenario]:
        """The best that was found, and its scenario.

        Raises
        ------
        InputError
            The scenario has several jobs, or nothing of it can run so.
        """
        given = load(self.scenario, self.settings)
        if len(given.jobs) != 1 or given.jobs[0].count != 1 or given.jobs[0].is_driven:
            raise InputError(
                "topoopt looks for the topology of one job, whose operations are known before it runs",
                location=given.locate("jobs"),
            )
        split = _split_of(given)
        servers = build(given).jobs[0].workload.world_size
        links = share_links(self._demand(split, servers), self.degree)
        best = self._run(split, links, servers)
        if best is None:
            raise InputError(f"{self.scenario} can't run on {servers} servers of {self.degree} links each")
        self.say(f"as given      {best}")
        for number in range(1, _ROUNDS):
            tried = [self._run(other, best.links, servers) for other in _splits(split)]
            split_best = min((one for one in (*tried, best) if one), key=lambda one: one.sample_ps)
            # SharedLinks again, for the parallelism that these suit best.
            links = share_links(self._demand(split_best.split, servers), self.degree)
            again = self._run(split_best.split, links, servers)
            better = min((one for one in (split_best, again) if one), key=lambda one: one.sample_ps)
            if better.sample_ps >= best.sample_ps:
                break
            best = better
            self.say(f"round {number:<8}{best}")
        ideal = _iteration_ps(self._scenario(best.split, servers, None))
        self.say(f"ideal switch  {format_time(round(ideal))} an iteration")
        return best, self._load(best.settings)

    def _load(self, settings: Mapping[str, Any]) -> Scenario:
        texts = (f"{path}={json.dumps(value)}" for path, value in settings.items())
        return load(self.scenario, [*self.settings, *texts])

    def _scenario(
        self, split: Split, servers: int, links: SharedLinks | None, algorithm: Any = None
    ) -> Scenario:
        return self._load(self._settings(split, servers, links, algorithm))

    def _settings(
        self, split: Split, servers: int, links: SharedLinks | None, algorithm: Any = None
    ) -> dict[str, Any]:
        """What is changed in the scenario; without links, one ideal switch as fast as all of a server's."""
        settings: dict[str, Any] = {}
        given = load(self.scenario, self.settings)
        for axis, size in zip(_AXES, split, strict=False):
            fields = type(given.jobs[0].workload).model_fields  # type: ignore[union-attr]
            path = f"parallel.{axis}" if "parallel" in fields else _LONG[axis]
            settings[f"jobs[0].workload.{path}"] = size
        if links is None:
            rate = f"{given_rate(self.rate) * self.degree}bps"
            settings["topology"] = {
                "kind": "switch",
                "endpoints": servers,
                "rate": rate,
                "latency": self.latency,
            }
            return settings
        settings["topology"] = {
            "kind": "direct_connect",
            "servers": servers,
            "degree": self.degree,
            "rate": self.rate,
            "latency": self.latency,
            "strides": links.strides,
            "pairs": links.pairs,
        }
        for name in sorted(self._demand(split, servers).names & {*_RINGED}):
            settings[f"collectives.{name}"] = algorithm
        return settings

    def _demand(self, split: Split, servers: int) -> ServerDemand:
        if split not in self._demands:
            built = build(self._scenario(split, servers, None))
            built.network.close()
            job = ready_job(0, built.jobs[0], built.topology)
            self._demands[split] = demand_of(job, servers)
        return self._demands[split]

    def _run(self, split: Split, links: SharedLinks, servers: int) -> TriedLinks | None:
        """One of them, run; None where it can't be."""
        key = split, repr(links)
        if key not in self._known:
            self._known[key] = self._try(split, links, servers)
        return self._known[key]

    def _try(self, split: Split, links: SharedLinks, servers: int) -> TriedLinks | None:
        for algorithm in _ALGORITHMS:
            try:
                settings = self._settings(split, servers, links, algorithm)
                scenario = self._load(settings)
                took = _iteration_ps(scenario)
            except AlgorithmError:
                continue
            except InputError:
                if split == _split_of(load(self.scenario, self.settings)):
                    raise
                return None
            return TriedLinks(split, links, settings, took, _samples(scenario))
        return None


def given_rate(text: str) -> float:
    """Bits per second.

    Raises
    ------
    InputError
        It is no rate.
    """
    try:
        return parse_rate(text)
    except ValueError as error:
        raise InputError(f"--rate {text}: {error}") from None


def _iteration_ps(scenario: Scenario) -> float:
    done = run(scenario)
    return float(done.summary.jobs[0].iteration_mean_ps or 0)


def _samples(scenario: Scenario) -> int:
    """Samples of an iteration, where the workload says; else 1."""
    workload = scenario.jobs[0].workload
    model = getattr(workload, "model", None) if type(workload).__name__ == "Transformer" else workload
    return int(getattr(model, "samples", 1) or 1)


def _split_of(scenario: Scenario) -> Split:
    workload = scenario.jobs[0].workload
    parallel = getattr(workload, "parallel", None)
    if parallel is not None and all(hasattr(parallel, axis) for axis in _AXES):
        return tuple(getattr(parallel, axis) for axis in _AXES)
    if all(hasattr(workload, name) for name in _LONG.values()):
        return tuple(getattr(workload, _LONG[axis]) for axis in _AXES)
    return ()


def _splits(split: Split) -> Iterator[Split]:
    """All ways to share as many ranks out among tp, pp and dp."""
    if not split:
        yield split
        return
    ranks = split[0] * split[1] * split[2]
    for tp in range(1, ranks + 1):
        for pp in range(1, ranks // tp + 1):
            if ranks % tp == 0 and ranks // tp % pp == 0:
                yield tp, pp, ranks // tp // pp
