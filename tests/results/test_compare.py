from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from cosim.results.compare import Comparison, compare
from cosim.results.store import save
from cosim.results.stored_run import load_run
from cosim.results.summary import Summary, summarize
from tests.results.synthetic_run import US, Builder, example


def slower() -> Builder:
    """Backward takes 5 us longer, and every iteration's end comes 10 us later."""
    build = example()
    late = {100 * US: 110 * US, 200 * US: 220 * US}
    build.rows = [(i, r, o, s, late.get(e, e + 5 * US * (o == 2))) for i, r, o, s, e in build.rows]
    return build


def two() -> tuple[Summary, Summary]:
    return summarize(example().records()), summarize(slower().records(digest="beef"))


def find(comparison: Comparison, item: str, key: str) -> tuple[object, object]:
    (row,) = (r for r in comparison.rows if r.item == item and r.key == key)
    return row.difference, row.ratio


def test_a_run_does_not_differ_from_itself() -> None:
    a, _ = two()
    comparison = compare(a, a)
    assert comparison.same_digest
    assert comparison.different == ()
    assert "digests: equal" in str(comparison)


def test_differences_have_sign_and_ratio() -> None:
    comparison = compare(*two())
    assert not comparison.same_digest
    assert find(comparison, "gpt", "iteration_mean_ps") == (10 * US, 1.1)
    assert find(comparison, "gpt", "compute.mean_ps") == (10 * US, 95 / 85)
    text = str(comparison)
    assert "+10 us  1.1000" in text
    assert "digests: different" in text


def test_what_a_run_does_not_tell_is_not_different() -> None:
    """Another simulator's run tells of operations: no messages, no traffic, no links."""
    a, b = two()
    silent = dataclasses.replace(b, num_messages=0, traffic=dataclasses.replace(b.traffic, total_bytes=0))
    comparison = compare(a, silent)
    assert comparison.same_digest is None
    assert not {"num_messages", "traffic.total_bytes", "used", "sent_bytes"} & {
        row.key for row in comparison.different
    }
    text = str(comparison)
    assert "digests: not compared" in text
    assert "b doesn't tell: messages, traffic" in text
    assert compare(silent, a).untold == tuple(
        dataclasses.replace(row, a=row.b, b=row.a) for row in comparison.untold
    )


def test_each_rank_s_end_has_a_row() -> None:
    a, b = two()
    rows = [row for row in compare(a, b).rows if row.section == "ranks"]
    assert [(row.a, row.b) for row in rows] == list(
        zip(a.jobs[0].finish_ps, b.jobs[0].finish_ps, strict=True)
    )


def test_comparing_is_a_mirror() -> None:
    a, b = two()
    there, back = compare(a, b), compare(b, a)
    assert [dataclasses.replace(r, a=r.b, b=r.a) for r in there.rows] == list(back.rows)
    for one, other in zip(there.rows, back.rows, strict=True):
        assert one.difference is None or one.difference == -(other.difference or 0)


def test_another_algorithm_for_the_same_collective_is_compared_with_it() -> None:
    a, b = two()
    tree = dataclasses.replace(b.collectives[0], algorithm="tree", mean_ps=2 * b.collectives[0].mean_ps)
    comparison = compare(a, dataclasses.replace(b, collectives=(tree,)))
    assert find(comparison, "gpt: all_reduce, 8 MB on 4 ranks", "mean_ps") == (50 * US, 2.0)


def test_several_algorithms_for_one_collective_are_told_apart() -> None:
    a, _ = two()
    both = (a.collectives[0], dataclasses.replace(a.collectives[0], algorithm="tree"))
    comparison = compare(a, dataclasses.replace(a, collectives=both))
    items = {row.item for row in comparison.rows if row.section == "collectives"}
    assert items == {"gpt: all_reduce ring, 8 MB on 4 ranks", "gpt: all_reduce tree, 8 MB on 4 ranks"}
    assert "  gpt: all_reduce tree, 8 MB on 4 ranks" in str(comparison)


def test_jobs_of_one_run_only_have_no_difference() -> None:
    a, b = two()
    renamed = dataclasses.replace(b, jobs=(dataclasses.replace(b.jobs[0], name="bert"),))
    assert find(compare(a, renamed), "bert", "duration_ps") == (None, None)


def test_settings_that_differ_are_listed(tmp_path: Path) -> None:
    runs = []
    for name, text in (
        ("a", "network: fair_share\njobs: [{name: gpt, weight: 1}]\nseed: 0\n"),
        ("b", "network: aware\njobs: [{name: gpt, weight: 2}]\nrelease: engine\nseed: 0\n"),
    ):
        records = example().records()
        directory = save(records, summarize(records), tmp_path / name)
        (directory / "scenario.yaml").write_text(text, encoding="utf-8")
        runs.append(load_run(directory))
    comparison = compare(*runs)
    assert comparison.settings is not None
    assert [(s.key, s.a, s.b) for s in comparison.settings] == [
        ("jobs.0.weight", 1, 2),
        ("network", "fair_share", "aware"),
        ("release", None, "engine"),
    ]
    assert "jobs.0.weight" in str(comparison)
    json.dumps(comparison.to_json())


def test_without_scenarios_settings_are_not_compared() -> None:
    comparison = compare(*two())
    assert comparison.settings is None
    assert "settings: not compared" in str(comparison)
