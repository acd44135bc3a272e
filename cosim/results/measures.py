"""Measures: one number of a run each, by name, for sweeps and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cosim.errors import InputError
from cosim.results.network_statistics import QueueSummary
from cosim.results.requests import RequestSummary
from cosim.results.summary import BACKGROUND, JobSummary, Summary
from cosim.units import PS_PER_S, format_rate, format_time, parse_rate, parse_size, parse_time

LAST = 10
"""Iterations that ``last_iterations`` looks at: where jobs have settled."""

Alone = Mapping[str, float]
"""Mean iteration of each job by itself, picoseconds."""


@dataclass(frozen=True)
class MeasureUnit:
    """What numbers of a kind are in.

    Attributes
    ----------
    suffix
        Of a column's name.
    symbol, per
        In figures and their CSV, and what a value is divided by to be in it.
    show
        A value with its unit, for people.
    read
        A value as a person writes it. Raises ValueError.
    """

    suffix: str
    symbol: str
    per: float
    show: Callable[[float], str]
    read: Callable[[str | float], float]


def read_number(value: str | float) -> float:
    """A number, also as ``10M``, ``1.5k``.

    Raises
    ------
    ValueError
        It is none.
    """
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number")
    text = str(value).strip().removesuffix("$").strip()
    scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1:], 1.0)
    try:
        return float(text if scale == 1.0 else text[:-1]) * scale
    except ValueError:
        raise ValueError(f"{value!r} is not a number; write 10e6, or 10M") from None


def _short(value: float, unit: str) -> str:
    for letter, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {letter}{unit}"
    return f"{value:.4g} {unit}".rstrip()


def _in(symbol: str, suffix: str) -> MeasureUnit:
    return MeasureUnit(suffix, symbol, 1.0, lambda value: _short(value, symbol), read_number)


UNITS = {
    "time": MeasureUnit(
        "_ps", "ms", 1e9, lambda value: format_time(round(value)), lambda value: float(parse_time(value))
    ),
    "bytes": MeasureUnit(
        "_bytes",
        "kB",
        1e3,
        lambda value: format_rate(value).replace("bps", "B"),  # in decimal units, whole or not
        lambda value: float(parse_size(value)),
    ),
    "rate": MeasureUnit("_bps", "Gbps", 1e9, format_rate, parse_rate),
    "count": MeasureUnit("", "", 1.0, lambda value: f"{value:,.0f}", read_number),
    "share": MeasureUnit("", "", 1.0, lambda value: f"{100 * value:.1f} %", read_number),
    "ratio": MeasureUnit("", "", 1.0, lambda value: f"{value:.3f}", read_number),
    "dollars": _in("$", "_usd"),
    "watts": _in("W", "_watts"),
    "joules": _in("J", "_joules"),
    "tokens/s": _in("tokens/s", ""),
    "tokens/s/$": _in("tokens/s/$", ""),
    "tokens/J": _in("tokens/J", ""),
}
"""By name. Names of measures in tokens say their unit themselves."""


@dataclass(frozen=True)
class Measured:
    """What a number is, what it is in (of :data:`UNITS`), and whether less is better."""

    text: str
    kind: str
    less_is_better: bool = field(default=True, kw_only=True)

    @property
    def unit(self) -> MeasureUnit:
        """The unit of the number."""
        return UNITS[self.kind]

    @property
    def sign(self) -> int:
        """1 where less is better, else -1."""
        return 1 if self.less_is_better else -1


@dataclass(frozen=True)
class Measure(Measured):
    """A number of a run, and how it is made of its summary."""

    of: Callable[[Summary, Alone], float]
    needs_alone: bool = False


def slowdown(job: JobSummary, alone: Alone) -> float:
    """Mean iteration over that of the job by itself; 1 where either is not known."""
    base = alone.get(job.name)
    return job.iteration_mean_ps / base if base and job.iteration_mean_ps else 1.0


def jain(values: list[float]) -> float:
    """Jain's index: (sum x)^2 / (n sum x^2), 1 where all are equal, 1/n where one has all.

    R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness ...", DEC TR-301, 1984.
    """
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def _jobs(summary: Summary) -> list[JobSummary]:
    """Those that iterate: background traffic is nobody's result, unless there is nothing else."""
    training = [job for job in summary.jobs if job.workload != BACKGROUND]
    return training or list(summary.jobs)


def _iteration(summary: Summary, _: Alone) -> float:
    return float(np.mean([job.iteration_mean_ps or 0 for job in _jobs(summary)]))


def _minibatch(summary: Summary, _: Alone) -> float:
    return float(np.mean([(job.iteration_mean_ps or 0) / job.minibatches for job in _jobs(summary)]))


def _last(summary: Summary, _: Alone) -> float:
    return float(np.mean([np.mean(job.iteration_ps[-LAST:] or [0]) for job in _jobs(summary)]))


def _slowest(summary: Summary, _: Alone) -> float:
    return float(max(job.iteration_mean_ps or 0 for job in _jobs(summary)))


def _slowdown(summary: Summary, alone: Alone) -> float:
    return float(np.mean([slowdown(job, alone) for job in _jobs(summary)]))


def _worst_slowdown(summary: Summary, alone: Alone) -> float:
    return max(slowdown(job, alone) for job in _jobs(summary))


def _fairness(summary: Summary, alone: Alone) -> float:
    return jain([1 / slowdown(job, alone) for job in _jobs(summary)])


def completions_ps(summary: Summary) -> list[int]:
    """From each job's arrival to its end, waiting included."""
    waited = {} if summary.scheduling is None else summary.scheduling.waited_ps
    return [job.finish_max_ps - job.start_ps + waited.get(job.name, 0) for job in _jobs(summary)]


def _gpu_utilisation(summary: Summary, _: Alone) -> float:
    whole = summary.num_endpoints * summary.end_ps
    return sum(job.compute.mean_ps * job.num_ranks for job in _jobs(summary)) / whole if whole else 0.0


def _queue(what: str) -> Callable[[Summary, Alone], float]:
    """A number of the queues."""

    def of(summary: Summary, _: Alone) -> float:
        if summary.queues is None:
            raise InputError(
                f"the network {summary.network} reports no queues, so none of their measures is known",
                hint="congestion and ns3 do",
            )
        value: float = getattr(summary.queues, what)
        return float(value)

    assert what in QueueSummary.__dataclass_fields__
    return of


def _answers(what: str) -> Callable[[Summary, Alone], float]:
    """A number of the requests that jobs answer, mean over those jobs."""

    def of(summary: Summary, _: Alone) -> float:
        found = [getattr(job.request, what) for job in _jobs(summary) if job.request is not None]
        values = [value for value in found if value is not None]
        if not values:
            raise InputError(
                f"no job has a {what}",
                hint="profiles of scripts that generate have them (docs/howto/profile-inference.md)",
            )
        return float(np.mean(values))

    assert what in RequestSummary.__dataclass_fields__
    return of


def _tokens_per_s(summary: Summary, alone: Alone) -> float:
    """As a search counts them before a run: samples where there are no sequences."""
    tokens = 0
    for job in _jobs(summary):
        mine = job.request.tokens if job.request else job.work and (job.work.tokens or job.work.samples)
        if not mine:
            raise InputError(
                f"no job has tokens_per_s unless all say their tokens: {job.name} doesn't",
                hint="trainings of the catalogue's models do, and profiles of scripts that generate",
            )
        tokens += mine
    iteration_ps = _iteration(summary, alone)
    return tokens / (iteration_ps / PS_PER_S) if iteration_ps else 0.0


MEASURES: dict[str, Measure] = {
    "iteration": Measure("mean iteration, mean over jobs", "time", _iteration),
    "minibatch": Measure("mean iteration over its minibatches, mean over jobs", "time", _minibatch),
    "first_token": Measure("time to a request's first token", "time", _answers("first_token_ps")),
    "further_token": Measure("what each further token takes", "time", _answers("further_token_ps")),
    "tokens_per_s": Measure(
        "tokens that all jobs train on or answer in a mean iteration, a second",
        "tokens/s",
        _tokens_per_s,
        less_is_better=False,
    ),
    "last_iterations": Measure(f"mean of the last {LAST} iterations, mean over jobs", "time", _last),
    "slowest": Measure("mean iteration of the slowest job", "time", _slowest),
    "makespan": Measure("simulated time until everything ended", "time", lambda s, _: float(s.end_ps)),
    "jct_mean": Measure(
        "completion time of a job, waiting included, mean over jobs",
        "time",
        lambda s, _: float(np.mean(completions_ps(s))),
    ),
    "jct_p99": Measure(
        "99th percentile of the jobs' completion times, waiting included",
        "time",
        lambda s, _: float(np.percentile(completions_ps(s), 99)),
    ),
    "waiting": Measure(
        "time that jobs waited for endpoints, mean over jobs",
        "time",
        lambda s, _: float(np.mean([*s.scheduling.waited_ps.values()])) if s.scheduling else 0.0,
    ),
    "gpu_utilisation": Measure(
        "GPUs that compute, of all endpoints, mean over the run",
        "share",
        _gpu_utilisation,
        less_is_better=False,
    ),
    "exposed": Measure(
        "exposed communication, share of the jobs' time",
        "share",
        lambda s, _: float(np.mean([job.exposed.share for job in _jobs(s)])),
    ),
    "fct_mean": Measure(
        "mean flow completion time", "time", lambda s, _: float(s.fct.mean_ps if s.fct else 0)
    ),
    "fct_p99": Measure(
        "99th percentile of flow completion times", "time", lambda s, _: float(s.fct.p99_ps if s.fct else 0)
    ),
    "queue_p99": Measure(
        "99th percentile of the longest queue, as bytes met it", "bytes", _queue("p99_bytes")
    ),
    "queue_max": Measure("most bytes in the longest queue", "bytes", _queue("max_bytes")),
    "marks": Measure("packets marked", "count", _queue("marks")),
    "drops": Measure("packets dropped", "count", _queue("drops")),
    "trims": Measure("packets trimmed", "count", _queue("trims")),
    "pauses": Measure("time that links were paused, all together", "time", _queue("pause_ps")),
    "slowdown": Measure(
        "mean iteration over that of the job by itself, mean over jobs", "ratio", _slowdown, needs_alone=True
    ),
    "worst_slowdown": Measure(
        "mean iteration over that of the job by itself, of the job that loses most",
        "ratio",
        _worst_slowdown,
        needs_alone=True,
    ),
    "fairness": Measure(
        "Jain's index of the jobs' speeds, each over its speed by itself",
        "ratio",
        _fairness,
        True,
        less_is_better=False,
    ),
}
