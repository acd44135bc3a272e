"""Translate a scenario: ``cosim translate``, and ``cosim.translate`` in Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosim.engine.records import JobInfo
from cosim.errors import InputError, ScenarioError
from cosim.experiment.build import build
from cosim.experiment.mistakes import find_named
from cosim.experiment.scenario import Scenario, load
from cosim.experiment.simulate import simulate
from cosim.files.folder import claimed, files_below, files_of, keep_others, written_whole
from cosim.registry import name_of
from cosim.translation.contract import Format, Progress, no_progress
from cosim.translation.loss_report import MOVED_STREAMS, LossReport
from cosim.translation.source import Source
from cosim.units import format_time
from cosim.workload.unroll import unrolled

if TYPE_CHECKING:
    from cosim.engine.records import Records
    from cosim.experiment.simulate import Run

REPORT_FILE = "translation.json"
"""The loss report and the list of files, in the folder that was written."""

_MOST_UNROLLED = 2_000_000


@dataclass(frozen=True, eq=False)
class Translation:
    """What was written where, and what was lost; as :func:`cosim.translate` returns it.

    Attributes
    ----------
    scenario
        That was translated.
    format, format_name
        What to.
    out
        The folder.
    files
        Written there, relative to it.
    report
        What was lost or approximated.
    source
        The scenario as formats take it.

    Examples
    --------
    >>> import tempfile
    >>> import cosim
    >>> scenario = cosim.loads('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> done = cosim.translate(scenario, "flow-list", tempfile.mkdtemp())
    >>> done.format_name, len(done.files) > 0
    ('flow-list', True)
    """

    scenario: Scenario
    format: Format
    format_name: str
    out: Path
    files: tuple[str, ...]
    report: LossReport
    source: Source

    def run(self, say: Callable[[str], None] = print) -> Run:
        """Run the target's simulator on the files; a run that ``cosim compare`` puts beside ours.

        Raises
        ------
        InputError
            The format starts no simulator, or the simulator is missing.
        """
        from cosim.experiment.simulate import Run

        ran = Run(self.scenario, self.format.run(self.source, self.out, say))
        self._say_what_moving_streams_does(say)
        return ran

    def _say_what_moving_streams_does(self, say: Callable[[str], None]) -> None:
        """Run here what was written, beside the scenario: what its streams would have changed."""
        moved = sum(
            entry.count for entry in self.report.entries("approximated") if entry.what == MOVED_STREAMS
        )
        workload = self.format.reads_back(self.source, self.out.resolve()) if moved else None
        if workload is None:
            return
        as_written = self.scenario.with_settings({"jobs": [{"name": "as written", "workload": workload}]})
        ends = [simulate(one, build(one)).records.end_ps for one in (self.scenario, as_written)]
        change = 100 * (ends[1] / ends[0] - 1) if ends[0] else 0.0
        say(
            f"{moved:,} operations are on other streams there: run here, what was written takes "
            f"{change:+.2f} % ({format_time(ends[1])}; the scenario {format_time(ends[0])})"
        )

    def __repr__(self) -> str:
        return f"<Translation of {self.scenario.name} as {self.format_name} in {self.out}>"

    def __str__(self) -> str:
        files = f"{len(self.files)} file{'' if len(self.files) == 1 else 's'}"
        return f"{self.scenario.name} as {self.format_name}: {files} in {self.out}\n{self.report}\n"


def translate(
    scenario: Scenario | str | Path,
    to: str | Mapping[str, Any] | Format,
    out: str | Path,
    *,
    set: Mapping[str, Any] | Iterable[str] = (),  # noqa: A002
    strict: bool = False,
    progress: Progress = no_progress,
) -> Translation:
    """Write a scenario's traffic for another simulator.

    Parameters
    ----------
    scenario
        A YAML file, or a scenario.
    to
        A format: its name, ``{"kind": name, option: value}``, or the format itself.
    out
        A folder. Files of an earlier translation there are replaced, others never.
    set
        Changes, as in ``{"jobs[0].iterations": 1}``.
    strict
        Refuse if anything would be lost or approximated; nothing is written then.
    progress
        Told now and then: done, total, of what.

    Raises
    ------
    InputError
        A mistake in the scenario, no such format, a folder with files of others, or a loss with ``strict``.

    Examples
    --------
    >>> import tempfile
    >>> import cosim
    >>> scenario = cosim.loads('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> cosim.translate(scenario, "goal", tempfile.mkdtemp()).files
    ('schedule.goal',)
    """
    if not isinstance(scenario, Scenario):
        scenario = load(scenario, set)
    elif set:
        scenario = scenario.with_settings(set)
    chosen = find_format(to)
    name = name_of("cosim.formats", type(chosen)) or type(chosen).__name__
    source = source_of(scenario)
    report = LossReport(name)
    chosen.examine(source, report)
    if strict:
        report.check_strict()
    with (
        claimed(out, [REPORT_FILE], inputs=scenario.files) as target,
        written_whole(target, files_of(target)) as part,
    ):
        chosen.write(source, part, report, progress)
        if strict:
            report.check_strict()
        files = tuple(files_below(part))
        told = {"format": name, "files": list(files), "report": report.to_json()}
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        (part / REPORT_FILE).write_text(text, encoding="utf-8")
        keep_others(target, files)
    return Translation(scenario, chosen, name, target, files, report, source)


def find_format(to: str | Mapping[str, Any] | Format) -> Format:
    """The format that ``to`` means; a plug-in's file, ``my.py:MyFormat``, starts from the working folder.

    Raises
    ------
    InputError
        No such format, or options that it doesn't have.
    """
    if isinstance(to, Format):
        return to
    found: Format = find_named("cosim.formats", Format, to)
    return found


def source_of(scenario: Scenario) -> Source:
    """The scenario as formats take it.

    Raises
    ------
    InputError
        Something in the scenario that can't be made.
    """
    for key, nobody in (("queue", "null"), ("scheduler", "none")):
        if getattr(scenario, key) is not None:
            raise ScenarioError(
                f"a {key} decides while a run goes on, which no other simulator can be told",
                location=scenario.locate(key),
                hint=f"translate the jobs as they are without it: --set {key}={nobody}",
            )
    if scenario.live:
        raise ScenarioError(
            "processes decide while a run goes on, which no other simulator can be told",
            location=scenario.locate("processes") or scenario.locate("jobs"),
        )
    if scenario.collectives.is_carried:
        raise ScenarioError(
            "code carries a collective while a run goes on, which no other simulator can be told",
            location=scenario.locate("collectives"),
            hint="name an algorithm that has a template: ring",
        )
    built = build(scenario)
    built.network.close()
    return Source(
        scenario.name,
        built.topology,
        tuple(_without_lags(job) for job in built.jobs),
        built.planner,
        partial(_recorded, scenario),
        scenario.network,
        scenario.memory,
        scenario.seed,
    )


def _without_lags(job: JobInfo) -> JobInfo:
    """The job with its iterations unrolled into one, where operations wait for earlier ones': no other
    simulator can be told that.
    """
    workload = job.workload
    if not workload.table.longest_lag:
        return job
    operations = len(workload.table) * job.iterations
    if operations > _MOST_UNROLLED:
        raise InputError(
            f"job {job.name!r}: {job.iterations} iterations that wait for each other are {operations:,} "
            f"operations of its programs; up to {_MOST_UNROLLED:,} are unrolled",
            hint="fewer iterations: --set jobs[0].iterations=8",
        )
    return replace(job, workload=unrolled(workload, job.iterations), iterations=1)


def _recorded(scenario: Scenario) -> Records:
    recorded = scenario.with_settings({"record.messages": "npz"})
    built = build(recorded)
    with closing(built.network):
        return simulate(recorded, built).records
