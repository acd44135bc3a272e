"""Tables of a run: numpy, pandas, Arrow; in memory and stored; in a notebook."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.results.table import Labels, Table

MS = 10**9
TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: congestion_aware
jobs:
  - name: <b>a</b>
    workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}
    iterations: 2
"""
NAMES = ("operations", "collectives", "messages", "links", "iterations")


@pytest.fixture(scope="module")
def run() -> cosim.Run:
    return cosim.run(TEXT, messages=True)


def test_columns_are_numpy_arrays_with_units_in_their_names(run: cosim.Run) -> None:
    assert run.iterations.duration_ps.tolist() == [6 * MS // 10] * 2
    assert run.iterations.start_ps.tolist() == [0, 6 * MS // 10]
    assert run.messages.num_rows == run.records.num_messages == 2 * 4 * 6
    assert (run.messages.size_bytes == 10**6).all()
    assert run.links.sent_bytes.sum() == run.messages.size_bytes.sum()
    assert run.links.utilisation.max() == 1
    assert run.collectives.collective.tolist() == ["all_reduce"] * 2
    assert run.collectives.group_size.tolist() == [4, 4]
    assert run.operations.num_rows == 2 * 4
    assert run.operations.kind.tolist() == ["collective"] * 8
    assert run.operations.job.tolist() == ["<b>a</b>"] * 8
    assert run.operations.end_ps.max() == run.records.end_ps
    with pytest.raises(AttributeError, match="links has no column 'sent'; it has name, src"):
        run.links.sent  # noqa: B018
    assert "sent_bytes" in dir(run.links)


def test_queues_are_columns_of_links_where_a_network_has_them() -> None:
    text = TEXT.replace("congestion_aware", "{model: congestion, control: dctcp}")
    links = cosim.run(text, {"jobs[0].iterations": 1}).links
    assert links.queue_max_bytes.shape == links.rate_bps.shape


def test_messages_that_were_not_kept_are_an_error_that_says_how_to() -> None:
    with pytest.raises(cosim.InputError, match="messages=True"):
        cosim.run(TEXT).messages  # noqa: B018


@pytest.mark.parametrize("name", NAMES)
def test_pandas_and_arrow_have_the_same_columns(run: cosim.Run, name: str) -> None:
    pytest.importorskip("pandas", reason="needs pandas: pip install '.[pandas]'")
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]'")
    table: Table = getattr(run, name)
    frame, arrow = table.to_pandas(), table.to_arrow()
    assert list(frame.columns) == arrow.column_names == list(table)
    for column in table:
        values = table[column].tolist()
        assert frame[column].tolist() == arrow[column].to_pylist() == values
        if values and isinstance(values[0], int) and column.endswith(("_ps", "_bytes")):
            assert frame[column].dtype == np.int64


def test_a_sweeps_trials_and_cells_are_tables() -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install '.[pandas]'")
    axes = {"rate": {"topology.rate": ["80Gbps", "160Gbps"]}}
    done = cosim.sweep(TEXT, axes, seeds=2, measures=["iteration", "exposed"])
    frame = done.trials.to_pandas()
    assert list(frame.columns) == ["rate", "seed", "iteration_ps", "exposed", "doubtful", "digest", "error"]
    assert isinstance(frame["rate"].dtype, pd.CategoricalDtype)
    means = frame.groupby("rate", observed=True)["iteration_ps"].mean()
    assert means.to_dict() == {"80Gbps": 6 * MS / 10, "160Gbps": 3 * MS / 10}
    cells = done.cells.to_pandas()
    assert cells[cells["measure"] == "iteration"]["mean"].tolist() == [
        0.6,
        0.3,
    ]  # milliseconds, as in the CSV


@pytest.mark.parametrize(("module", "extra"), [("pandas", "pandas"), ("pyarrow", "parquet")])
def test_what_is_not_installed_is_said_in_a_line(
    run: cosim.Run, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(cosim.InputError) as caught:
        run.links.to_pandas() if module == "pandas" else run.links.to_arrow()
    assert str(caught.value).endswith(f"needs {module}, which is not installed: pip install '.[{extra}]'")
    assert "\n" not in str(caught.value)


def test_a_stored_run_has_the_same_tables(run: cosim.Run, tmp_path: Path) -> None:
    cosim.run(TEXT, {"record.messages": True}, out=tmp_path)
    stored = cosim.load_run(tmp_path)
    assert stored.digest == run.digest
    for name in NAMES:
        here, there = getattr(run, name), getattr(stored, name)
        assert {*there} == {*here}
        for column in there:
            np.testing.assert_array_equal(there[column], here[column], err_msg=f"{name}.{column}")


def test_a_critical_path_is_a_table_and_is_stored(run: cosim.Run, tmp_path: Path) -> None:
    path = cosim.run(TEXT, {"record.messages": True}, out=tmp_path).critical_path()
    assert (path.end_ps - path.start_ps).sum() == run.iterations.duration_ps[-1]
    assert path.kind.tolist() == ["collective"] * 6  # steps of the ring
    stored = cosim.load_run(tmp_path).critical_path()
    for column in path:
        np.testing.assert_array_equal(stored[column], path[column])
    one_step = cosim.run(TEXT).critical_path(0, 0)  # without messages
    assert one_step.what.tolist() == ["all_reduce 4 MB"]


def test_an_empty_table_is_a_table() -> None:
    empty = Table("nothing", {"job": Labels(np.zeros(0, np.int32), ()), "end_ps": np.zeros(0, np.int64)})
    assert (empty.num_rows, empty.job.tolist(), len(empty.to_pandas())) == (0, [], 0)
    assert "nothing: 0 rows" in empty._repr_html_()


class Tags(HTMLParser):
    """Which tags there are, and that every one is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)
        assert {name for name, _ in attrs} <= {"style", "class"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_everything_escaped_and_without_scripts(run: cosim.Run) -> None:
    studied = cosim.run(TEXT)
    studied.study("alone")
    studied.study("open_loop")
    axes = {"<i>": {"<u>": {"topology.rate": "80Gbps"}, "&amp;": {"topology.rate": "160Gbps"}}}
    shown: list[Any] = [
        run,
        run.summary,
        studied,
        cosim.sweep(TEXT, axes),
        cosim.study({"kind": "networks", "networks": "congestion_unaware,congestion_aware"}, TEXT),
        cosim.compare(run, cosim.run(TEXT, {"jobs[0].name": "<script>x</script>"})),
        run.operations,
    ]
    for one in shown:
        html = one._repr_html_()
        tags = Tags(html)
        assert tags.seen <= {"div", "table", "tr", "th", "td", "span"}
        assert "color:" not in html  # the page's own, dark or light
        words = [word for word in str(one).replace("INTERRUPTED", "").split() if word.isalpha()]
        if not isinstance(one, Table):
            missing = {word for word in words if word not in tags.text}
            assert not missing, missing
    assert "<b>a</b>" in Tags(run._repr_html_()).text
    assert "&lt;script&gt;" in shown[5]._repr_html_()
