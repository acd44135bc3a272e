"""Jobs that wait for endpoints, and jobs that somebody directs: against schedules worked out by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.errors import InputError, ScenarioError, WorkloadError
from cosim.results.measures import MEASURES
from tests.cluster.test_cassini import MS, dumbbell
from tests.cluster.test_cassini import job as periodic

SWITCH = {"kind": "switch", "endpoints": 4, "rate": "100Gbps", "latency": "0ns"}


def job(name: str, ranks: int, ms: int, **more: Any) -> dict[str, Any]:
    """Computes so long on each rank, and says a word to the next."""
    workload = {"kind": "periodic", "compute": f"{ms}ms", "size": 0, "ranks": ranks}
    return {"name": name, "workload": workload, **more}


def queued(jobs: list[dict[str, Any]], **more: Any) -> cosim.Run:
    queue = {"backfill": more.pop("backfill", False)}
    return cosim.run({"topology": SWITCH, "network": "fair_share", "jobs": jobs, "queue": queue, **more})


def starts_ms(run: cosim.Run) -> list[float]:
    return [job.start_ps / MS for job in run.records.jobs]


LINE = [
    job("a", 2, 10),
    job("b", 4, 10, start="1ms"),
    job("c", 2, 5, start="2ms"),
    job("d", 2, 20, start="3ms"),
]


def test_first_come_first_served() -> None:
    # b needs all four, which a gives back at 10; c and d come after it, at 20.
    run = queued(LINE)
    assert starts_ms(run) == [0, 10, 20, 20]
    found = run.summary.scheduling
    assert found is not None
    assert found.waited_ps == {"a": 0, "b": 9 * MS, "c": 18 * MS, "d": 17 * MS}
    done = [10, 19, 23, 37]  # from arrival to end
    assert MEASURES["jct_mean"].of(run.summary, {}) == pytest.approx(np.mean(done) * MS)
    assert MEASURES["jct_p99"].of(run.summary, {}) == pytest.approx(np.percentile(done, 99) * MS)
    assert MEASURES["waiting"].of(run.summary, {}) == 11 * MS
    assert "queue fifo: 3 of 4 jobs waited, mean 11 ms, at most 18 ms" in str(run)


def test_backfill_lets_who_fits_go_first() -> None:
    # c takes the two that a left, to 7; d those two from then on, to 27; b all of them then.
    assert starts_ms(queued(LINE, backfill=True)) == [0, 27, 2, 7]


def test_gpus_that_compute() -> None:
    # Two of four compute for 10 ms, all for 10, none else: 60 of 80 GPU-ms, half of them with senders only.
    run = queued([job("a", 2, 10), job("b", 4, 10)])
    assert run.records.end_ps == 20 * MS
    assert MEASURES["gpu_utilisation"].of(run.summary, {}) == pytest.approx((1 * 10 + 2 * 10) / (4 * 20))


def test_where_a_job_sits_is_known_when_it_starts() -> None:
    # a has 0 and 1 and b 2 and 3; c, spread over what is free, gets b's, which are free first.
    jobs = [
        job("a", 2, 30),
        job("b", 2, 10),
        job("c", 2, 5, placement="spread"),
        job("d", 2, 5, start="31ms"),
    ]
    run = queued(jobs)
    assert [one.endpoints.tolist() for one in run.records.jobs] == [[0, 1], [2, 3], [2, 3], [0, 1]]
    assert starts_ms(run) == [0, 0, 10, 31]


def test_who_wants_certain_endpoints_waits_for_those() -> None:
    mine = {"kind": "explicit", "endpoints": [1, 0]}
    run = queued([job("a", 2, 30), job("b", 2, 5, placement=mine), job("c", 2, 5)], backfill=True)
    assert starts_ms(run) == [0, 30, 0]
    assert run.records.jobs[1].endpoints.tolist() == [1, 0]


def test_messages_go_between_the_endpoints_that_a_job_got() -> None:
    # Collectives and sends alike, in whichever loop: b runs where a ran, at a's speed.
    for communication in ("all_reduce", "send"):
        work = {
            "kind": "periodic",
            "compute": "1ms",
            "size": "10MB",
            "ranks": 4,
            "communication": communication,
        }
        jobs = [{"name": name, "workload": work, "iterations": 3} for name in ("a", "b")]
        several: tuple[dict[str, Any], ...] = ({}, {"release": "engine"}, {"record": {"messages": True}})
        for more in several:
            run = queued(jobs, **more)
            one, two = run.summary.jobs
            assert one.iteration_ps == two.iteration_ps
            assert two.start_ps == one.finish_max_ps
            assert run.digest == queued(jobs).digest


def test_a_queue_that_nobody_waits_in_changes_nothing() -> None:
    jobs = [periodic("one", 141, 114), periodic("two", 90, 70, start="33ms")]
    plain, queue = cosim.run(dumbbell(jobs)), cosim.run(dumbbell(jobs, queue={}))
    assert plain.digest == queue.digest
    assert plain.records.end_ps == queue.records.end_ps


def test_pace_and_slow_ranks_wait_with_their_job() -> None:
    slow = {"ranks": [0], "factor": 2.0}
    run = queued([job("a", 4, 10), job("b", 4, 10, stragglers=[slow], jitter=0.1)])
    alone = queued([job("a", 4, 10, start="500ms"), job("b", 4, 10, stragglers=[slow], jitter=0.1)])
    assert run.summary.jobs[1].iteration_ps == alone.summary.jobs[1].iteration_ps
    assert starts_ms(run) == [0, 10]


def test_a_job_larger_than_the_cluster_is_refused_with_its_line() -> None:
    text = f"""
topology: {SWITCH}
network: fair_share
queue: {{}}
jobs:
  - workload: {{kind: periodic, compute: 1ms, size: 0, ranks: 6}}
"""
    with pytest.raises(WorkloadError, match="the job has 6 ranks, the topology 4 endpoints") as refused:
        cosim.run(text.replace("'", ""))
    assert refused.value.location is not None
    assert refused.value.location.line == 6


def test_hundreds_of_jobs_one_after_another() -> None:
    # A Poisson stream onto one seat: Lindley's recursion says when each starts.
    work = {"kind": "periodic", "compute": "8ms", "size": 0, "ranks": 4}
    jobs = [{"name": "j", "workload": work, "count": 300, "arrival": {"kind": "poisson", "mean": "10ms"}}]
    run = queued(jobs, seed=5)
    found = run.summary.scheduling
    assert found is not None
    arrived, wait, waits = [*found.arrived_ps.values()], 0, []
    for at, time in enumerate(arrived):
        wait = max(0, wait + 8 * MS - (time - arrived[at - 1])) if at else 0
        waits.append(wait)
    assert [*found.waited_ps.values()] == waits
    assert max(waits) > 8 * MS


# -- schedulers over time ----------------------------------------------------------------------------


def test_what_is_under_way_keeps_its_path() -> None:
    """The second job comes while the first sends, which goes on by its spine; the second takes the other."""
    fabric: dict[str, Any] = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 2}
    fabric["rate"] = "100Gbps"
    jobs = []
    for name, ends, start in (("one", [0, 2], "0ms"), ("two", [1, 3], "15ms")):
        place = {"kind": "explicit", "endpoints": ends}
        jobs.append({**periodic(name, 10, 20, iterations=6), "placement": place, "start": start})
    text = {"topology": {**fabric, "latency": "0ns"}, "network": "fair_share", "jobs": jobs}
    run = cosim.run({**text, "scheduler": "crux"})
    assert {time for one in run.summary.jobs for time in one.iteration_ps} == {30 * MS}
    up = {link.name: link.sent_bytes for link in run.summary.links if "leaf0 -> spine" in link.name}
    assert [*up.values()] == [6 * 250_000_000] * 2


PLUGIN = '''
from cosim.plugins import Decision, Scheduler


class Turnabout(Scheduler):
    """The first job by one spine while it is alone, by the other with company"""

    pins_paths = True

    def decide(self, jobs, topology):
        way = {0: ["leaf0 -> spine0", "spine0 -> leaf1"], 1: ["leaf0 -> spine1", "spine1 -> leaf1"]}
        names = [topology.link_name(k) for k in range(topology.num_links)]
        links = ["gpu0 -> leaf0", *way[len(jobs) - 1], "leaf1 -> gpu2"]
        first = [job for job in jobs if job.name == "one"]
        return Decision(paths={job.number: {(0, 2): tuple(map(names.index, links))} for job in first})
'''


def test_new_messages_go_by_new_paths(tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    fabric: dict[str, Any] = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "endpoints_per_leaf": 2}
    fabric["rate"] = "100Gbps"
    one = {**periodic("one", 10, 20, iterations=4), "placement": {"kind": "explicit", "endpoints": [0, 2]}}
    two = {**job("two", 2, 30, start="15ms"), "placement": {"kind": "explicit", "endpoints": [1, 3]}}
    scenario = cosim.loads(
        "topology: {kind: switch, endpoints: 2, rate: 1Gbps, latency: 0ns}\nnetwork: fair_share\n"
        "jobs: [{workload: {kind: periodic, compute: 1ms, size: 0}}]",
        {
            "topology": fabric | {"latency": "0ns"},
            "jobs": [one, two],
            "scheduler": "mine.py:Turnabout",
        },
        base=tmp_path,
    )
    for release in ("network", "engine"):
        run = cosim.run(scenario, {"release": release})
        sent = {link.name: link.sent_bytes for link in run.summary.links}
        # Messages from 10, 40, 70 and 100 ms; two runs from 15 to 45: those of 40 and no other see it.
        assert sent["leaf0 -> spine0"] == 3 * 250_000_000
        assert sent["leaf0 -> spine1"] == 250_000_000
        assert run.summary.jobs[0].iteration_ps == (30 * MS,) * 4


def test_shifts_are_kept_when_jobs_come_and_go() -> None:
    jobs = [periodic("one", 141, 114, iterations=20), periodic("two", 141, 114, iterations=6, start="600ms")]
    jobs.append(periodic("three", 141, 114, iterations=6, start="3000ms"))
    run = cosim.run(dumbbell(jobs, scheduler="cassini"))
    found = run.summary.scheduling
    assert found is not None
    assert found.decisions >= 5
    assert run.summary.jobs[0].iteration_ps == (255 * MS,) * 20  # who was there first keeps its turns
    for late in run.summary.jobs[1:]:
        assert late.iteration_ps[1:] == (255 * MS,) * 5


def test_a_late_iteration_waits_for_its_next_turn() -> None:
    # A straggler's fifth iteration takes 30 ms more than its period: 12 %, beyond the 5 % that are let pass.
    slow = {"ranks": [0], "factor": 1 + 30 / 141, "first_iteration": 4, "iterations": 1}
    jobs = [periodic("one", 141, 114, stragglers=[slow]), periodic("two", 141, 114)]
    one, two = cosim.run(dumbbell(jobs, scheduler="cassini")).summary.jobs
    assert one.iteration_ps[4] > 255 * MS
    assert one.iteration_ps[4] + one.iteration_ps[5] == 3 * 255 * MS  # two iterations in three turns
    assert {*one.iteration_ps[6:], *two.iteration_ps[6:]} == {255 * MS}
    loose = cosim.run(dumbbell(jobs, scheduler={"kind": "cassini", "drift": 0.5})).summary.jobs
    assert loose[0].iteration_ps[4] + loose[0].iteration_ps[5] < 3 * 255 * MS


# -- what doesn't go together ------------------------------------------------------------------------


def warnings(**more: Any) -> str:
    jobs = [periodic("one", 10, 5), periodic("two", 10, 5)]
    return "\n".join(cosim.run(dumbbell(jobs, **more)).warnings)


def test_settings_that_can_do_nothing_are_named() -> None:
    assert "queue: has no effect: with share_endpoints nobody waits" in warnings(
        queue={}, share_endpoints=True
    )
    several = {"kind": "cassini", "candidates": 3}
    assert "scheduler.candidates: has no effect: without a queue" in warnings(scheduler=several)
    assert not warnings(scheduler=several, queue={})
    said = warnings(scheduler="crux", network="congestion_aware")
    assert "scheduler: has no effect: of its priorities" in said


@pytest.mark.parametrize("key", ["queue", "scheduler"])
def test_what_is_decided_on_the_way_is_not_translated(key: str, tmp_path: Any) -> None:
    more: dict[str, Any] = {"queue": {}} if key == "queue" else {"scheduler": "cassini"}
    with pytest.raises(ScenarioError, match=f"a {key} decides while a run goes on"):
        cosim.translate(
            cosim.Scenario(**dumbbell([periodic("one", 10, 5)], **more)), "chakra", tmp_path / "out"
        )


WRONG = {
    "None": "W.decide gave None; it should give a Decision",
    "Decision(priorities={9: 0})": "W.decide gave orders for job 9; those that run are 0",
    "Decision(priorities={0: -1})": "W.decide gave job 0 the priority -1",
    "Decision(shifts=[Shifts({0: 1}, {0: 0})])": "W.decide gave job 0 a shift of 1 in 0",
    "Decision(paths={0: {(0, 1): (0,)}})": "W.decide gave job 0 a path from 0 to 1 that doesn't lead there",
    "1 / 0": "mine.py:9: decide: ZeroDivisionError",
}


@pytest.mark.parametrize("said", WRONG)
def test_what_is_no_decision_is_refused(said: str, tmp_path: Any) -> None:
    (tmp_path / "mine.py").write_text(
        "from cosim.plugins import Decision, Scheduler, Shifts\n\n\nclass W(Scheduler):\n"
        '    """Wrong"""\n\n    pins_paths = True\n'
        f"    def decide(self, jobs, topology):\n        return {said}\n"
    )
    (tmp_path / "run.yaml").write_text(
        "topology: {kind: switch, endpoints: 2, rate: 1Gbps, latency: 0ns}\nnetwork: fair_share\n"
        "scheduler: mine.py:W\njobs: [{workload: {kind: periodic, compute: 1ms, size: 1}}]\n"
    )
    with pytest.raises(InputError, match=re.escape(WRONG[said])) as refused:
        cosim.run(tmp_path / "run.yaml")
    assert "mine.py:9" in str(refused.value) or "run.yaml:3: scheduler:" in str(refused.value)
