"""Jobs that processes hold, pause and tell what their messages do; and what ranks wait for."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import simpy

import cosim
from cosim.cluster.schedulers.profile import Placed
from cosim.experiment.build import build
from cosim.experiment.shared_cluster import shared_cluster
from cosim.plugins import Operation, OpKind, Peer
from tests.inputs import ROOT

Proc = Generator[simpy.Event, Any, Any]
QUEUE = ROOT / "scenarios" / "cluster-queue.yaml"
FEW = {"jobs[0].count": 8, "jobs[1].count": 4, "jobs[0].iterations": 4, "jobs[1].iterations": 3}
RING = {"kind": "ring", "endpoints": 8, "rate": "80Gbps", "latency": "0ns"}
PERIODIC = {"kind": "periodic", "compute": "10us", "size": "100kB", "ranks": 2}
"""10 us of computation, 10 us of sending."""
JOB = {"name": "one", "workload": PERIODIC, "iterations": 10}
US = 1_000_000


def world(**more: object) -> dict[str, Any]:
    return {"topology": RING, "network": "fair_share", **more}


def first_come_first_served(sim: Any, *, backfill: bool) -> None:
    waiting: list[Any] = []

    def go_on() -> None:
        for job in [*waiting]:
            if seats := sim.room(job):
                waiting.remove(job)
                job.begin(seats)
            elif not backfill:
                return

    def lives(job: Any) -> Proc:
        yield job.arrived
        waiting.append(job)
        go_on()
        yield job.ended
        go_on()

    for job in sim.jobs.values():
        sim.process(lives(job))


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize(
    "changes",
    [FEW, {**FEW, "seed": 5}, pytest.param({}, marks=pytest.mark.slow)],
    ids=["few", "other", "all"],
)
def test_a_queue_as_a_process_has_the_digest_of_the_built_in(changes: dict[str, Any], backfill: bool) -> None:
    built_in = cosim.run(QUEUE, {**changes, "queue.backfill": backfill})
    with cosim.open(QUEUE, {**changes, "queue": None}, held=True) as sim:
        first_come_first_served(sim, backfill=backfill)
        run = sim.run()
    assert run.digest == built_in.digest
    starts = {job.start_ps for job in run.summary.jobs}
    assert len(starts) > 8


def test_a_held_job_begins_once_and_where_it_fits() -> None:
    with cosim.open(world(jobs=[{**JOB, "start": "5us"}]), held=True) as sim:
        job = sim.jobs["one"]
        with pytest.raises(cosim.SimulationError, match="one has not arrived yet"):
            job.begin([0, 1])
        sim.run(until=job.arrived)
        assert sim.now == 5 * US
        for seats, says in (([0], "2 ranks, but 1 endpoints"), ([0, 9], "to 9"), ([1, 1], "one rank of it")):
            with pytest.raises(cosim.WorkloadError, match=says):
                job.begin(seats)
        job.begin([2, 3])
        with pytest.raises(cosim.SimulationError, match="one has begun"):
            job.begin([0, 1])
        sim.run()
        assert job.is_through
        assert sim.now == 205 * US


def test_a_held_job_that_never_begins_is_said() -> None:
    with (
        cosim.open(world(jobs=[JOB]), held=True) as sim,
        pytest.raises(cosim.StallError, match=r"one is held"),
    ):
        sim.run()


def test_a_job_pauses_and_goes_on() -> None:
    """An iteration takes 20 us: it is paused in the third, until 100 us."""
    seen = []

    def pauses(sim: Any) -> Proc:
        job = sim.jobs["one"]
        yield sim.timeout("45us")
        yield job.pause()
        seen.append((sim.now, job.iterations_done, job.is_through))
        yield sim.timeout("40us")
        with pytest.raises(cosim.SimulationError, match="one is paused already"):
            job.pause()
        job.resume()
        with pytest.raises(cosim.SimulationError, match="one is not paused"):
            job.resume()
        yield job.iteration(3)
        seen.append((sim.now, job.iterations_done, job.is_through))
        yield job.ended
        seen.append((sim.now, job.iterations_done, job.is_through))

    with cosim.open(world(jobs=[JOB])) as sim:
        sim.process(pauses(sim))
        run = sim.run()
    assert seen == [(60 * US, 3, False), (120 * US, 4, False), (240 * US, 10, True)]
    assert run.records.num_messages == cosim.run(world(jobs=[JOB])).records.num_messages


def test_a_pause_before_the_start_a_resume_at_once_and_a_stop_while_paused() -> None:
    with cosim.open(world(jobs=[{**JOB, "start": "10us"}])) as sim:
        job = sim.jobs["one"]
        done = job.pause()
        sim.run(until="5us")
        assert done.processed
        job.resume()
        ended = sim.run(until=job.ended)
        assert sim.now == 210 * US
        del ended
    with cosim.open(world(jobs=[JOB])) as sim:
        job = sim.jobs["one"]
        sim.run(until="30us")
        job.pause()
        job.resume()
        job.pause()
        sim.run(until="70us")
        assert job.iterations_done == 2
        ended = job.ended
        job.stop()
        sim.run(until=ended)
        assert sim.now == 70 * US
        assert job.is_through
        with pytest.raises(cosim.SimulationError, match="was stopped at 70 us already"):
            job.pause()


def test_a_job_that_is_paused_for_ever_is_said() -> None:
    with cosim.open(world(jobs=[JOB])) as sim:
        sim.jobs["one"].pause()
        with pytest.raises(cosim.StallError, match=r"one is paused"):
            sim.run()


def test_messages_of_a_job_that_gets_another_priority_go_first() -> None:
    """Both send 100 kB over one link, 20 us each where they share; then the other's waits for the one's."""
    work = {"kind": "periodic", "compute": "0ns", "size": "100kB", "ranks": 2}
    jobs = [
        {
            "name": name,
            "workload": work,
            "iterations": 4,
            "placement": {"kind": "explicit", "endpoints": [0, 1]},
        }
        for name in ("one", "other")
    ]
    ends = []

    def controller(sim: Any) -> Proc:
        yield sim.jobs["one"].iteration(0) & sim.jobs["other"].iteration(0)
        ends.append(sim.now)
        sim.jobs["other"].change(priority=1)
        yield sim.jobs["one"].iteration(2)
        ends.append(sim.now)
        yield sim.jobs["one"].ended
        ends.append(sim.now)

    with cosim.open(world(jobs=jobs, share_endpoints=True)) as sim:
        sim.process(controller(sim))
        sim.run()
    # At 20 us both begin their second iteration before the controller is told: from the third on they differ.
    assert ends[0] == 20 * US
    assert ends[2] - ends[1] == 10 * US


@pytest.mark.parametrize(
    ("network", "how", "says"),
    [
        ("congestion_unaware", {"priority": 1}, "has no priorities"),
        ("fair_share", {"priority": -1}, "priority -1 is 0 or more"),
        ("fair_share", {}, "change their priority, or their paths"),
        ("fair_share", {"paths": {("npu0", "npu2"): ["npu1"]}}, "opened without changes_links"),
    ],
)
def test_what_messages_can_not_become(network: str, how: dict[str, Any], says: str) -> None:
    with cosim.open(world(jobs=[JOB], network=network)) as sim, pytest.raises(cosim.CosimError, match=says):
        sim.jobs["one"].change(**how)


def test_what_ranks_wait_for() -> None:
    def compute(name: str, duration: int) -> Operation:
        return Operation(name, OpKind.COMPUTE, "compute", duration_ps=duration * US)

    reduce = Operation("grads", OpKind.COLLECTIVE, "net", (0,), collective="all_reduce", size_bytes=100_000)
    send = Operation("out", OpKind.SEND, "net", (1,), size_bytes=5, peer=Peer(rank=2))
    recv = Operation("in", OpKind.RECV, "net", (1,), size_bytes=5, peer=Peer(rank=0))
    programs = (
        cosim.Program("slow", (compute("long", 30), reduce, send)),
        cosim.Program("fast", (compute("short", 10), reduce)),
        cosim.Program("last", (compute("short", 10), reduce, recv)),
    )
    workload = cosim.Workload("w", cosim.DeviceMesh({"rank": 3}), programs, np.arange(3, dtype=np.int32))
    with cosim.open(world(topology={**RING, "endpoints": 3})) as sim:
        job = sim.start(workload)
        sim.run(until="20us")
        assert job.waits_for(0) == [("long", "compute", 0, ())]
        assert job.waits_for(1) == [("grads", "all_reduce", 10 * US, (0,))]
        sim.run(until="31us")
        assert job.waits_for(1) == [("grads", "all_reduce", 10 * US, ())]
        with pytest.raises(cosim.WorkloadError, match="there is no rank 3"):
            job.waits_for(3)
        sim.run()
        assert job.waits_for(1) == []


def test_a_scheduler_as_a_process_has_the_digest_of_the_built_in() -> None:
    """Crux's decisions, carried out by processes: whenever a job begins or ends, all are told anew."""
    path = ROOT / "scenarios" / "crux.yaml"
    scenario = cosim.load(path)
    built, cluster = shared_cluster(scenario, build(scenario))
    assert cluster is not None
    topology, submitted, scheduler = built.topology, cluster.jobs, cluster.scheduler
    assert scheduler is not None
    names, running = topology.node_names, dict[int, Any]()

    def tell(sim: Any) -> None:
        placed = []
        for number in running:
            profile = submitted[number].profile
            assert profile is not None
            seats = sim.engine_job(number).info.endpoints
            placed.append(Placed(number, submitted[number].name, profile, seats))
        said = scheduler.decide(placed, topology)
        for number, job in running.items():
            job.change(priority=said.priorities.get(number, submitted[number].priority))
            ways = said.paths.get(number, {})
            between = {pair: [names[topology.link_dst[one]] for one in ways[pair][:-1]] for pair in ways}
            job.change(paths=between)

    def lives(sim: Any, job: Any) -> Proc:
        yield job.arrived
        job.begin(submitted[job.number].endpoints)
        running[job.number] = job
        tell(sim)
        yield job.ended
        del running[job.number]
        tell(sim)

    with cosim.open(path, {"scheduler": None}, held=True, changes_links=True) as sim:
        for job in sim.jobs.values():
            sim.process(lives(sim, job))
        run = sim.run()
    assert run.digest == cosim.run(path).digest != cosim.run(path, {"scheduler": None}).digest
