"""What a run of a scenario gives, and how it ends when it can't go on."""

from __future__ import annotations

import pytest

import cosim
from cosim.engine import replay as engine
from cosim.errors import AlgorithmError, SimulationError, StallError
from cosim.experiment.progress import RunProgress

TEXT = """\
topology: {kind: switch, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: congestion_aware
jobs:
  - workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}
"""


def programs(*operations: str) -> str:
    """A job of one program per rank, each given as the inside of a YAML list of operations."""
    listed = ", ".join(f"{{ranks: [{rank}], operations: [{each}]}}" for rank, each in enumerate(operations))
    return f"{{kind: operations, world_size: {len(operations)}, programs: [{listed}]}}"


def collective(name: str, ranks: str, after: str = "") -> str:
    deps = f", deps: [{after}]" if after else ""
    return f"{{name: {name}, kind: collective, collective: all_reduce, size: 1MB, ranks: {ranks}{deps}}}"


CROSSED = programs(
    f"{collective('a', '[0, 1]')}, {collective('b', '[0, 2]', 'a')}",
    f"{collective('c', '[1, 2]')}, {collective('a', '[0, 1]', 'c')}",
    f"{collective('b', '[0, 2]')}, {collective('c', '[1, 2]', 'b')}",
)


def test_the_traffic_matrix_is_a_call_away() -> None:
    run = cosim.run(cosim.loads(TEXT))
    matrix = run.traffic_matrix()
    assert matrix.size_bytes.shape[1:] == (4, 4)
    assert matrix.total_bytes.tolist() == [
        [0, 6 * 10**6, 0, 0],
        [0, 0, 6 * 10**6, 0],
        [0, 0, 0, 6 * 10**6],
        [6 * 10**6, 0, 0, 0],
    ]


def test_ranks_that_wait_in_a_circle_are_listed_with_what_waits_behind() -> None:
    with pytest.raises(StallError) as caught:
        cosim.run(cosim.loads(TEXT, [f"jobs[0].workload={CROSSED}"]))
    assert set(caught.value.waits) == {
        "rank 0: all_reduce 'a', 1 MB (iteration 0): waits for rank 1 to start it",
        "rank 1: all_reduce 'c', 1 MB (iteration 0): waits for rank 2 to start it",
        "rank 2: all_reduce 'b', 1 MB (iteration 0): waits for rank 0 to start it",
        "rank 0: op 1 'b' waits for op 0 'a'",
        "rank 1: op 1 'a' waits for op 0 'c'",
        "rank 2: op 1 'c' waits for op 0 'b'",
    }


def test_with_several_jobs_a_stall_names_the_job() -> None:
    fine = "{name: fine, workload: {kind: periodic, compute: 1us, size: 1B}}"
    jobs = f"[{fine}, {{name: bad, workload: {CROSSED}}}]"
    with pytest.raises(StallError) as caught:
        cosim.run(cosim.loads(TEXT, [f"jobs={jobs}", "topology.endpoints=5"]))
    assert caught.value.waits
    assert all(line.startswith("bad: rank") for line in caught.value.waits)


def test_what_a_stream_keeps_waiting_is_said() -> None:
    think = "{name: t, kind: compute, duration: 1us}"
    free = "{name: b, kind: collective, collective: all_gather, size: 1MB}"
    first = "{name: a, kind: collective, collective: all_reduce, size: 1MB}"
    late = "{name: a, kind: collective, collective: all_reduce, size: 1MB, deps: [t]}"
    job = programs(f"{first}, {free}", f"{think}, {late}, {free}")
    with pytest.raises(StallError, match="rank 0: op 1 'b' waits for stream 'comm', which op 0 'a' holds"):
        cosim.run(cosim.loads(TEXT, [f"jobs[0].workload={job}"]))


def test_a_run_beyond_what_picoseconds_count_to_is_refused() -> None:
    text = ["jobs[0].workload={kind: periodic, compute: 2000000s, size: 1B}", "jobs[0].iterations=5"]
    with pytest.raises(SimulationError, match="53 days"):
        cosim.run(cosim.loads(TEXT, text))


def test_files_of_an_algorithm_that_are_not_there_are_a_mistake_in_collectives() -> None:
    settings = ["collectives.all_reduce={algorithm: chakra, path: nowhere}"]
    with pytest.raises(AlgorithmError, match=r"collectives: nowhere: there is no file nowhere\.0\.et"):
        cosim.run(cosim.loads(TEXT, settings))


def test_one_message_between_two_ranks_is_a_collective_too() -> None:
    run = cosim.run(cosim.loads(TEXT, ["jobs[0].workload.collective=send_recv", "jobs[0].workload.ranks=2"]))
    (found,) = run.summary.collectives
    assert (found.collective, found.messages, found.algbw_bps) == ("send_recv", 1, 40e9)
    with pytest.raises(AlgorithmError, match="between 2 ranks"):
        cosim.run(cosim.loads(TEXT, ["jobs[0].workload.collective=send_recv"]))


@pytest.mark.parametrize("release", ["network", "engine"])
def test_what_an_interrupted_run_did_adds_up(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    def stop(at: RunProgress) -> None:
        if at.done > 11:
            raise KeyboardInterrupt

    monkeypatch.setattr(engine, "_PROGRESS_S", 0.0)
    job = (
        "{kind: transformer, layers: 2, hidden: 64, heads: 4, vocabulary: 64, sequence: 64, gpu: a100-80gb,"
        " tensor_parallel: 2, data_parallel: 2}"
    )
    run = cosim.run(cosim.loads(TEXT, [f"jobs[0].workload={job}", f"release={release}"]), progress=stop)
    assert run.records.interrupted
    (found,) = run.summary.jobs
    assert found.iterations_done == 0
    assert found.idle.min_ps >= 0
    parts = (found.compute, found.exposed, found.host_alone, found.idle)
    ranks = len(found.finish_ps)
    spans = sum(finish - found.start_ps for finish in found.finish_ps)
    assert sum(part.mean_ps * ranks for part in parts) == pytest.approx(spans, abs=4 * ranks)
