"""Jobs beside processes: started, watched, stopped; and scenarios that name processes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

import cosim
from tests.inputs import ROOT

Proc = Generator[simpy.Event, Any, Any]
RING = {"kind": "ring", "endpoints": 8, "rate": "80Gbps", "latency": "0ns"}
PERIODIC = {"kind": "periodic", "compute": "10us", "size": "100kB", "ranks": 2}
"""10 us of computation, 10 us of sending."""
JOB = {"name": "one", "workload": PERIODIC, "iterations": 10}
US = 1_000_000
SCENARIOS = ROOT / "scenarios"
FEW = {"jobs[0].count": 8, "jobs[1].count": 4, "jobs[0].iterations": 4, "jobs[1].iterations": 3}


def world(**more: object) -> dict[str, Any]:
    return {"topology": RING, "network": "fair_share", **more}


def test_iterations_and_the_end_of_a_job_are_events() -> None:
    seen = []

    def watches(sim: Any) -> Proc:
        job = sim.jobs["one"]
        yield job.iteration(2)
        seen.append((sim.now, job.iterations_done, job.is_through))
        yield job.iteration()
        seen.append((sim.now, job.iterations_done, job.is_through))
        done = yield job.ended
        seen.append((sim.now, job.iterations_done, job.is_through))
        assert done.ended_ps == sim.now
        yield job.iteration(9) | sim.timeout("1ms")  # that is over: it happens at once
        seen.append((sim.now, job.iterations_done, job.is_through))

    with cosim.open(world(jobs=[JOB])) as sim:
        sim.process(watches(sim))
        sim.run()
    assert seen == [(60 * US, 3, False), (80 * US, 4, False), (200 * US, 10, True), (200 * US, 10, True)]


def test_a_run_with_processes_that_do_nothing_is_the_run_without() -> None:
    plain = cosim.run(world(jobs=[JOB, {**JOB, "name": "two", "start": "7us"}]))
    with cosim.open(world(jobs=[JOB, {**JOB, "name": "two", "start": "7us"}])) as sim:

        def looks(sim: Any) -> Proc:
            while True:
                yield sim.timeout("1us") | sim.jobs["two"].iteration()
                if sim.jobs["two"].is_through:
                    return

        sim.process(looks(sim))
        run = sim.run()
    assert run.digest == plain.digest
    assert run.summary.jobs[0].iteration_ps == plain.summary.jobs[0].iteration_ps
    assert len(run.records.jobs) == 2


@pytest.mark.parametrize("at", [0, 45])
def test_a_job_that_a_process_starts_is_one_of_the_scenario(at: int) -> None:
    late = {**JOB, "name": "late", "start": f"{at}us", "placement": {"kind": "explicit", "endpoints": [4, 5]}}
    right = cosim.run(world(jobs=[JOB, late])).records

    def starts(sim: Any) -> Proc:
        yield sim.timeout(f"{at}us")
        job = sim.start({**JOB, "name": "late"}, placement=[4, 5])
        done = yield job.ended
        assert done.took_ps == 200 * US

    with cosim.open(world(jobs=[JOB])) as sim:
        process = sim.process(starts(sim))
        records = sim.run(until=process).records
    assert [job.name for job in records.jobs] == ["one", "late"]
    assert records.jobs[1].start_ps == at * US
    np.testing.assert_array_equal(records.iteration_end_ps[1], right.iteration_end_ps[1])


def test_a_job_from_a_file_and_a_workload(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("workload: {kind: periodic, compute: 1us, size: 10kB, ranks: 2}\n")
    scenario = tmp_path / "cluster.yaml"
    scenario.write_text(
        "topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 0ns}\nnetwork: fair_share\n"
    )
    with cosim.open(scenario) as sim:
        one = sim.start("job.yaml", placement=range(2), name="first")
        other = sim.start("job.yaml", placement=range(2, 4))
        run = sim.run()
        with pytest.raises(cosim.InputError, match="'first' is taken by another job"):
            sim.start("job.yaml", placement=range(2), name="first")
        with pytest.raises(cosim.InputError, match="has 2 ranks, but its placement 3 endpoints"):
            sim.start("job.yaml", placement=range(3))
    assert (one.is_through, other.is_through) == (True, True)
    assert [job.name for job in run.summary.jobs if job.workload != "processes"] == ["first", "job1"]


def test_a_job_is_stopped_once() -> None:
    def stops(sim: Any) -> Proc:
        yield sim.timeout("45us")
        done = yield sim.jobs["one"].stop()
        assert done.ended_ps == 60 * US  # the iteration under way ends

    with cosim.open(world(jobs=[JOB])) as sim:
        process = sim.process(stops(sim))
        run = sim.run()
        assert process.ok
        with pytest.raises(cosim.SimulationError, match=r"one was stopped at 45 us by stops \(.*\) already"):
            sim.jobs["one"].stop()
    assert run.summary.jobs[0].iterations_done == 3
    with (
        cosim.open(world(jobs=[JOB])) as sim,
        pytest.raises(cosim.SimulationError, match="has no iteration 10"),
    ):
        sim.jobs["one"].iteration(10)


def test_two_processes_that_stop_one_job() -> None:
    """The second is told who was first; the run is kept, and goes on without it."""

    def stops(sim: Any, when: str) -> Proc:
        yield sim.timeout(when)
        yield sim.jobs["one"].stop()

    with cosim.open(world(jobs=[JOB])) as sim:
        for when in ("45us", "46us"):
            sim.process(stops(sim, when))
        says = r"one was stopped at 45 us by stops \(\S*test_jobs.py:\d+\) already"
        with pytest.raises(cosim.SimulationError, match=says):
            sim.run()
        assert sim.run().summary.jobs[0].iterations_done == 3


def test_first_come_first_served_as_a_process() -> None:
    """The times of every job are those of the built-in queue."""
    built_in = cosim.run(SCENARIOS / "cluster-queue.yaml", FEW)
    scenario = cosim.load(SCENARIOS / "cluster-queue.yaml", FEW)
    cluster = {"topology": scenario.topology, "network": scenario.network, "seed": scenario.seed}
    waiting: list[cosim.Job] = []

    def arrives(sim: Any, job: cosim.Job, after_ps: int) -> Proc:
        yield sim.timeout(after_ps)
        waiting.append(job)
        go_on(sim)

    def lives(sim: Any, job: Any) -> Proc:
        yield job.ended
        go_on(sim)

    def go_on(sim: Any) -> None:
        while waiting and (endpoints := sim.room(waiting[0])):
            sim.process(lives(sim, sim.start(waiting.pop(0), placement=endpoints)))

    with cosim.open(cluster) as sim:
        for entry in scenario.jobs:
            assert entry.arrival is not None
            times = entry.arrival.times(entry.count, scenario.context)
            for name, after in zip(entry.names(), times, strict=True):
                job = entry.model_copy(update={"name": name, "count": 1, "arrival": None})
                sim.process(arrives(sim, job, after))
        run = sim.run()
    ours = {job.name: (job.start_ps, job.finish_max_ps) for job in run.summary.jobs}
    theirs = {job.name: (job.start_ps, job.finish_max_ps) for job in built_in.summary.jobs}
    assert ours == theirs
    assert len({start for start, _ in ours.values()}) > 8


def test_a_whole_program_is_one_event() -> None:
    step = cosim.Operation("step", cosim.OpKind.COMPUTE, duration_ps=10 * US)
    sync = cosim.Operation(
        "sync", cosim.OpKind.COLLECTIVE, deps=(0,), collective="all_reduce", size_bytes=80_000
    )
    program = cosim.Program("all", (step, sync))

    def runs(sim: Any) -> Proc:
        yield sim.compute(range(4), "5us")
        done = yield sim.run_program(range(4), program, iterations=3)
        assert done.took_ps == 3 * (10 + 6 * 2) * US  # 6 steps of 20 kB

    with cosim.open(world()) as sim:
        process = sim.process(runs(sim))
        sim.run()
        assert process.ok


def test_the_algorithm_is_that_which_is_asked_for() -> None:
    with cosim.open(world()) as sim:
        for algorithm in ("ring", "direct", "", "halving_doubling"):
            sim.run(until=sim.all_reduce(range(8), "1MB", algorithm=algorithm))
        run = sim.so_far()
    assert [one.algorithm for one in run.records.collectives] == [
        "ring",
        "direct",
        "ring",
        "halving_doubling",
    ]


def test_stragglers_are_slow_here_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("""
from cosim.plugins import Driver

class Once(Driver):
    \"\"\"Computes once\"\"\"

    def num_ranks(self):
        return 4

    def drive(self, sim, job, context):
        yield job.compute(range(4), "10us")
""")
    text = "\n".join(
        [
            "topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 0ns}",
            "network: fair_share",
            "jobs: [{workload: {plugin: mine.py:Once}, stragglers: [{ranks: [2], factor: 1.5}], start: 3us}]",
        ]
    )
    run = cosim.run(cosim.loads(text, base=tmp_path))
    assert run.records.finish_ps[0].tolist() == [13 * US, 13 * US, 18 * US, 13 * US]


@pytest.mark.parametrize("name", ["parameter-server", "circuit"])
@pytest.mark.parametrize("release", ["network", "engine"])
def test_scenarios_with_processes_have_one_digest(name: str, release: str) -> None:
    plain = cosim.run(SCENARIOS / f"{name}.yaml")
    assert cosim.run(SCENARIOS / f"{name}.yaml", {"release": release}, messages=True).digest == plain.digest
    other = cosim.run(SCENARIOS / f"{name}.yaml", {"seed": 1})
    assert (other.digest == plain.digest) == (name == "circuit")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"jobs[0].iterations": 3}, "a process decides itself how often"),
        ({"fold": "always"}, "every rank is simulated"),
        ({"queue": {}}, "beside processes there is no queue"),
        ({"jobs[0].workload.workers": 9}, "endpoints"),
    ],
)
def test_settings_that_do_not_go_with_processes(change: dict[str, Any], says: str) -> None:
    with pytest.raises(cosim.InputError, match=says):
        cosim.run(SCENARIOS / "parameter-server.yaml", change)


def test_what_needs_all_operations_beforehand_refuses_processes(tmp_path: Path) -> None:
    with pytest.raises(cosim.InputError, match="processes decide while a run goes on"):
        cosim.translate(SCENARIOS / "circuit.yaml", "flow-list", tmp_path)


BAD = """
from cosim.plugins import Driver, ProcessSpec

class Returns(ProcessSpec):
    '''No generator'''

    def live(self, sim, context):
        return 5

class Raises(ProcessSpec):
    '''Raises'''

    def live(self, sim, context):
        yield sim.timeout(5)
        raise KeyError("of mine")

class Number(ProcessSpec):
    '''A number'''

    def live(self, sim, context):
        yield 5

class Waits(ProcessSpec):
    '''Waits for ever'''

    def live(self, sim, context):
        yield sim.recv(0, 1, 5)

class Silent(Driver):
    '''Waits for ever'''

    def num_ranks(self):
        return 2

    def drive(self, sim, job, context):
        yield sim.event()
"""


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("processes: [{plugin: bad.py:Returns}]", "Returns.live gave 5, no process"),
        ("processes: [{plugin: bad.py:Raises}]", r"bad.py:15: live: KeyError: 'of mine'"),
        ("processes: [{plugin: bad.py:Number}]", "Invalid yield value"),
        ("processes: [{plugin: bad.py:Waits}]", r"live \(.*bad.py:\d+\) waits for recv"),
        ("jobs: [{workload: {plugin: bad.py:Silent}}]", r"drive \(.*bad.py:\d+\)"),
    ],
)
def test_plug_ins_that_are_wrong(more: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    text = (
        f"topology: {{kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}}\nnetwork: fair_share\n{more}\n"
    )
    with pytest.raises(cosim.CosimError, match=says):
        cosim.run(cosim.loads(text, base=tmp_path))
