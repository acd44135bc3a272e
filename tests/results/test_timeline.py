from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from cosim.errors import InputError
from cosim.results.render.timeline import timeline, write_timeline
from tests.results.synthetic_run import MB, Builder, example


def events(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_every_event_has_what_the_format_asks_for(tmp_path: Path) -> None:
    trace = json.loads(write_timeline(example().records(), tmp_path / "t.json").read_text(encoding="utf-8"))
    for event in trace["traceEvents"]:
        assert event["ph"] in {"M", "X", "C", "i"}
        assert event.keys() >= {"name", "ph", "ts", "pid", "tid"}
        assert event["ts"] >= 0
        assert event["ph"] != "X" or event["dur"] >= 0


def test_operations_become_slices_in_microseconds() -> None:
    trace = timeline(example().records())
    slices = events(trace, "X")
    assert len(slices) == len(example().rows)
    reduce = next(e for e in slices if e["name"] == "gradients" and e["args"]["iteration"] == 1)
    assert (reduce["ts"], reduce["dur"], reduce["cat"]) == (120.0, 60.0, "collective")
    assert reduce["args"] == {
        "iteration": 1,
        "operation": 1,
        "bytes": 8 * MB,
        "collective": "all_reduce",
        "algorithm": "ring",
        "group": "0, 1, 2, 3",
        "waited_for_last_us": 10.0,
    }


def test_picoseconds_survive_as_decimals() -> None:
    build = Builder(ranks=1, iterations=1)
    build.op(0, 0, 0, 3_600_000_000_000_001, 3_600_000_000_000_004)
    (event,) = events(json.loads(json.dumps(timeline(build.records()))), "X")
    assert round(event["ts"] * 10**6) == 3_600_000_000_000_001
    assert event["dur"] == 3e-6


def test_slices_of_a_thread_do_not_overlap() -> None:
    threads: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events(timeline(example().records()), "X"):
        threads.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in threads.values():
        spans.sort()
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))


def test_processes_and_threads_are_named() -> None:
    trace = timeline(example().records())
    names = [e["args"]["name"] for e in events(trace, "M") if e["name"] == "process_name"]
    assert names[0].startswith("network fair_share")
    assert "gpt rank 0 (gpu3)" in names
    threads = [e["args"]["name"] for e in events(trace, "M") if e["name"] == "thread_name" and e["pid"] == 2]
    assert sorted(threads) == ["comm", "compute", "cpu", "receives", "receives 2"]


def test_ranks_left_out_are_counted() -> None:
    trace = timeline(example().records(), max_ranks=3)
    assert {e["pid"] for e in events(trace, "X")} == {2, 3, 4}
    assert trace["otherData"]["ranks_left_out"] == 1
    (note,) = events(trace, "i")
    assert note["name"] == "1 of 4 ranks are not shown"
    assert events(timeline(example().records()), "i") == []


def test_counters_show_the_busiest_links_only() -> None:
    trace = timeline(example().records(), max_links=2)
    assert {e["name"] for e in events(trace, "C")} == {"link gpu0 -> switch", "link switch -> gpu0"}
    half = [e for e in events(trace, "C") if e["name"] == "link switch -> gpu0"]
    assert [(e["ts"], e["args"]["utilisation %"]) for e in half] == [(0.0, 50.0), (200.0, 0.0)]


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't write the timeline"):
        write_timeline(example().records(), tmp_path / "nowhere" / "t.json")
