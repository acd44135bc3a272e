from __future__ import annotations

import dataclasses
import json
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from cosim.errors import InputError
from cosim.results.store import COLUMNS, save
from cosim.results.stored_run import load_run
from cosim.results.summary import summarize
from tests.results.synthetic_run import example


def saved(directory: Path, **options: object) -> Path:
    records = example().records(messages=True)
    return save(records, summarize(records, name="x"), directory, **options)  # type: ignore[arg-type]


def test_run_comes_back_as_it_went(tmp_path: Path) -> None:
    records = example().records()
    run = load_run(saved(tmp_path / "deep" / "run"))
    assert run.summary == summarize(records, name="x")
    columns = run.columns
    assert set(columns) == {*COLUMNS}
    for name in ("job", "iteration", "rank", "op", "start_ps", "end_ps"):
        np.testing.assert_array_equal(columns[f"op_{name}"], getattr(records.ops, name))
    np.testing.assert_array_equal(columns["iteration_end_ps"].reshape(2, 4), records.iteration_end_ps[0])
    np.testing.assert_array_equal(columns["link_busy_ps"], records.links.busy_ps)
    np.testing.assert_array_equal(columns["traffic_bytes"], records.traffic.size_bytes)
    np.testing.assert_array_equal(columns["collective_ranks"], [0, 1, 2, 3] * 2)
    assert columns["collective_algorithm"].tolist() == ["ring", "ring"]
    assert columns["node_name"].tolist() == list(records.topology.node_names)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_messages_come_back_from_either_format(tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="needs Arrow: pip install '.[parquet]'")
    messages = load_run(saved(tmp_path, messages=kind)).message_records
    asked = example().records(messages=True).messages
    assert messages is not None
    assert asked is not None
    for field in dataclasses.fields(asked):
        np.testing.assert_array_equal(getattr(messages, field.name), getattr(asked, field.name))


def test_saving_again_leaves_nothing_of_the_run_before(tmp_path: Path) -> None:
    saved(tmp_path, messages="npz")
    saved(tmp_path)
    assert load_run(tmp_path).message_records is None


def test_equal_runs_give_equal_columns_byte_for_byte(tmp_path: Path) -> None:
    one, two = saved(tmp_path / "a"), saved(tmp_path / "b")
    assert (one / "columns.npz").read_bytes() == (two / "columns.npz").read_bytes()


def test_parquet_without_pyarrow_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install '\.\[parquet\]'"):
        saved(tmp_path / "run", messages="parquet")
    assert not (tmp_path / "run").exists()


def test_messages_that_were_not_recorded_cannot_be_saved(tmp_path: Path) -> None:
    records = example().records()
    with pytest.raises(InputError, match=r"record\.messages"):
        save(records, summarize(records), tmp_path, messages="npz")


def test_missing_directory_and_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no directory"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"summary\.json is missing"):
        load_run(tmp_path)
    (saved(tmp_path) / "columns.npz").unlink()
    with pytest.raises(InputError, match=r"columns\.npz is missing"):
        load_run(tmp_path)


@pytest.mark.parametrize("cut", [0, 100, 0.5, -10])
def test_truncated_columns_are_named(tmp_path: Path, cut: float) -> None:
    path = saved(tmp_path) / "columns.npz"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * cut) if isinstance(cut, float) else cut])
    with pytest.raises(InputError, match=r"columns\.npz: broken"):
        load_run(tmp_path)


def test_damage_inside_a_column_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path) / "columns.npz"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 3 : len(damaged) // 3 + 200] = bytes(200)
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"columns\.npz"):
        _ = load_run(tmp_path).columns


def test_other_formats_and_missing_columns_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path) / "columns.npz"
    with np.load(path) as stored:
        columns = {name: stored[name] for name in stored.files}
    del columns["op_rank"]
    np.savez(path, **columns)
    with pytest.raises(InputError, match="op_rank"):
        load_run(tmp_path)
    np.savez(path, **{**columns, "format": np.int64(99)})
    with pytest.raises(InputError, match="format 99"):
        load_run(tmp_path)


def test_wrong_summaries_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path) / "summary.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    for text, said in (
        ("{", "not JSON"),
        (json.dumps({**data, "end_ps": "soon"}), "end_ps"),
        ("[]", "format"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            load_run(tmp_path)


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="can't write the run"):
        saved(tmp_path / "file")


def test_no_column_needs_pickle(tmp_path: Path) -> None:
    with np.load(saved(tmp_path) / "columns.npz", allow_pickle=False) as stored:
        assert all(stored[name].dtype != object for name in stored.files)


def test_a_way_of_packing_that_is_not_known_is_a_broken_file(tmp_path: Path) -> None:
    """Found by tests.lab.fuzz: zipfile raises NotImplementedError."""
    path = saved(tmp_path) / "columns.npz"
    body = bytearray(path.read_bytes())
    at = -1
    while (at := body.find(b"PK\x01\x02", at + 1)) >= 0:
        body[at + 10] = 99
    path.write_bytes(body)
    with pytest.raises(InputError, match="compression method is not supported"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("number", "said"), [("9" * 4301, "not JSON"), ("1e999", "beyond what a number can be")]
)
def test_numbers_that_no_number_can_be_are_refused(tmp_path: Path, number: str, said: str) -> None:
    """Found by tests.lab.fuzz: the page of such a run was an OverflowError."""
    path = saved(tmp_path) / "summary.json"
    path.write_text(re.sub(r'"wall_s": [0-9.e-]+', f'"wall_s": {number}', path.read_text()))
    with pytest.raises(InputError, match=said):
        load_run(tmp_path)


def test_a_columns_header_that_is_no_python_is_a_broken_file(tmp_path: Path) -> None:
    """Found by tests.lab.fuzz: numpy raises a TokenError."""
    path = saved(tmp_path) / "columns.npz"
    with np.load(path, allow_pickle=False) as stored:
        names = stored.files
    with zipfile.ZipFile(path) as old:
        bodies = {name: old.read(f"{name}.npy") for name in names}
    at = bodies["op_start_ps"].index(b"{") if "op_start_ps" in bodies else 10
    with zipfile.ZipFile(path, "w") as new:
        for name, body in bodies.items():
            spoiled = body if name == "format" else body[:at] + b"{'d" + body[at + 3 :].replace(b"}", b"x", 1)
            new.writestr(f"{name}.npy", spoiled)
    with pytest.raises(InputError, match="broken, or not what cosim wrote"):
        repr(load_run(tmp_path).operations)
