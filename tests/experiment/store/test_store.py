"""The store: no question is computed twice, and none is taken for another."""

from __future__ import annotations

import errno
import logging
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from cosim.experiment.store import question
from cosim.experiment.store.place import _Folder, place_of
from cosim.experiment.store.question import question_of
from cosim.experiment.store.runs import NewRun, RunStore, open_store
from cosim.results.stored_run import StoredRun
from tests.experiment.store.questions import SCENARIO, Count, write_sweep


def test_a_sample_is_run_again(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    cosim.sweep(write_sweep(tmp_path), store=store)
    done = CliRunner().invoke(app, ["runs", "check", "--store", store, "--sample", "3"])
    assert (done.exit_code, done.stdout) == (0, "3 of 3 runs come to the same again; 4 are stored\n")
    opened = open_store(store)
    entry = opened.entries()[0][0]
    opened.keep(NewRun(replace(entry, digest="0" * 32), {}))
    done = CliRunner().invoke(app, ["runs", "check", "--store", store])
    assert done.exit_code == 1
    assert f"{entry.id} has the digest {'0' * 32}, and now comes to {entry.digest}" in done.output


def test_of_two_who_make_a_store_at_once_both_have_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = _Folder.write

    def after_another(place: _Folder, name: str, content: bytes, *, once: bool = False) -> None:
        monkeypatch.undo()
        others.append(open_store(tmp_path))
        write(place, name, content, once=once)

    others: list[RunStore] = []
    monkeypatch.setattr(_Folder, "write", after_another)
    mine = open_store(tmp_path)
    assert mine.is_here()
    assert others[0].is_here()
    assert mine.identity == others[0].identity


@pytest.mark.parametrize("where", ["store", "memory://runs"])
def test_the_same_sweep_again_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    sweep, store = write_sweep(tmp_path), where if "://" in where else str(tmp_path / where)
    plain = cosim.sweep(cosim.Sweep.load(sweep)).trials_csv()
    count = Count(monkeypatch)
    assert cosim.sweep(cosim.Sweep.load(sweep), store=store).trials_csv() == plain
    assert count.runs == 4
    assert cosim.sweep(cosim.Sweep.load(sweep), store=store).trials_csv() == plain
    assert count.runs == 4
    assert cosim.sweep(cosim.Sweep.load(sweep), store=store, again=True).trials_csv() == plain
    assert count.runs == 8
    wider = cosim.Sweep.load(sweep, ["seeds=3", "name=other", "measures=[exposed, iteration]"])
    assert len(cosim.sweep(wider, store=store).runs) == 6  # under another name, and with other measures
    assert count.runs == 10
    assert len(open_store(store).entries()[0]) == 6
    open_store(store).place.remove("store.json")


def test_a_sweep_names_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path), ["store=kept"])
    first = cosim.sweep(sweep)
    count = Count(monkeypatch)
    again = cosim.sweep(sweep, store=tmp_path / "kept")
    assert again.runs == first.runs
    assert count.runs == 0
    store = open_store(again.store, new=False)
    assert [store.entry(one.run).digest for one in again.runs] == [one.digest for one in again.runs]
    assert [one["run"] for one in again.to_json()["stored"]] == [one.run for one in first.runs]


def test_whatever_determines_a_run_makes_it_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = tmp_path / "scenario.yaml"
    (tmp_path / "topology.yml").write_text(
        "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 10.0 ]\nlatency: [ 0.0 ]\n"
    )
    scenario.write_text(
        "topology: {kind: astra_sim, file: topology.yml}\nnetwork: fair_share\n"
        "jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]\n"
    )
    store = tmp_path / "store"

    def is_known(*changes: str) -> bool:
        run = cosim.run(scenario, changes, store=store)
        assert run.digest == cosim.run(scenario, changes).digest
        return isinstance(run, StoredRun)

    assert not is_known()
    assert is_known()
    assert is_known("name=other", "description=of the same")
    assert not is_known("seed=1")
    assert not is_known("jobs[0].iterations=2")
    topology = tmp_path / "topology.yml"
    before = topology.read_text()
    os.utime(topology)
    assert is_known()  # the content counts
    topology.write_text(before.replace("10.0", "20.0"))
    assert not is_known()
    topology.write_text(before)
    assert is_known()  # and what was is known still
    monkeypatch.setattr(question, "version", lambda: "another")
    assert not is_known()


def test_a_plugin_s_source_and_what_it_imports_count(tmp_path: Path) -> None:
    (tmp_path / "rates.py").write_text("RATE = 80e9\n")
    (tmp_path / "mine.py").write_text(
        "from rates import RATE\n"
        "from cosim.plugins import Builder, TopologySpec\n"
        "class Pair(TopologySpec):\n"
        "    '''Two, joined'''\n"
        "    def build(self, context):\n"
        "        b = Builder('pair')\n"
        "        one, two = b.endpoint('a'), b.endpoint('b')\n"
        "        b.link(one, two, RATE, 0)\n"
        "        return b.build()\n"
    )
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "topology: {plugin: mine.py:Pair}\nnetwork: fair_share\n"
        "jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 2, size: 4MB}}]\n"
    )
    key = question_of(cosim.load(scenario)).key
    assert question_of(cosim.load(scenario)).key == key
    (tmp_path / "rates.py").write_text("RATE = 40e9\n")
    assert question_of(cosim.load(scenario)).key != key


def test_traces_that_a_run_reads_count(tmp_path: Path, small_traces: Path) -> None:
    """Files that no setting names: of a folder of traces, one for each rank."""
    folder = tmp_path / "traces"
    folder.mkdir()
    source = next(path for path in sorted(small_traces.rglob("*.0.et")))
    for path in source.parent.glob(source.name.replace(".0.et", ".*.et")):
        (folder / path.name).write_bytes(path.read_bytes())
    ranks = len([*folder.iterdir()])
    scenario = cosim.loads(
        f"topology: {{kind: switch, endpoints: {ranks}, rate: 80Gbps, latency: 0ns}}\nnetwork: fair_share\n"
        "jobs: [{workload: {kind: chakra, path: traces}}]\n",
        base=tmp_path,
    )
    store = open_store(tmp_path / "store")
    cosim.run(scenario, store=store.address)
    [entry] = store.entries()[0]
    assert {f"traces/{path.name}" for path in folder.iterdir()} <= {*entry.files}
    assert isinstance(cosim.run(scenario, store=store.address), StoredRun)
    moved = next(folder.iterdir())
    moved.write_bytes(moved.read_bytes()[:-1])
    assert store.find(question_of(scenario)) is None


def test_a_run_that_is_whole_in_the_store_is_the_run(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = cosim.run(SCENARIO, out=tmp_path / "a", store=store)
    again = cosim.run(SCENARIO, out=tmp_path / "b", store=store)
    assert isinstance(again, StoredRun)
    assert not isinstance(first, StoredRun)
    assert again.summary == first.summary
    assert again.links.sent_bytes.tolist() == first.links.sent_bytes.tolist()
    for name in ("summary.json", "columns.npz", "scenario.yaml", "timeline.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


@pytest.mark.parametrize("damage", [b"", b"not JSON", b"cut"])
def test_a_broken_entry_is_named_and_run_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path))
    whole = cosim.sweep(sweep, store=tmp_path / "store").trials_csv()
    broken = next((tmp_path / "store" / "runs").rglob("*.json"))
    broken.write_bytes(broken.read_bytes()[:-20] if damage == b"cut" else damage)
    listed = CliRunner().invoke(app, ["runs", "list", "--store", str(tmp_path / "store")])
    assert broken.stem in listed.stderr
    assert "3 of 3 runs" in listed.stdout
    assert cosim.sweep(sweep, store=tmp_path / "store").trials_csv() == whole
    assert broken.stem in caplog.text
    assert open_store(tmp_path / "store").entries()[1] == {}


def test_a_part_that_was_changed_is_noticed(tmp_path: Path) -> None:
    cosim.run(SCENARIO, store=tmp_path / "store")
    part = next((tmp_path / "store").rglob("summary.json"))
    part.write_text(part.read_text().replace("fair_share", "fair_shore"))
    assert not isinstance(cosim.run(SCENARIO, store=tmp_path / "store"), StoredRun)
    assert isinstance(cosim.run(SCENARIO, store=tmp_path / "store"), StoredRun)


def test_a_disk_that_is_full_is_said_once_and_the_sweep_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sweep = cosim.Sweep.load(write_sweep(tmp_path))
    whole = cosim.sweep(sweep).trials_csv()
    store = open_store(tmp_path / "store")
    fsync, left = os.fsync, [3]

    def full(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert cosim.sweep(sweep, store=store.address).trials_csv() == whole
    assert len(re.findall("No space left on device", caplog.text)) == 1
    assert not [*Path(store.address).rglob(".writing-*")]
    assert len(store.entries()[0]) == 1
    assert store.clear() == 0  # nothing of those that couldn't be kept
    assert cosim.sweep(sweep, store=store.address).trials_csv() == whole
    assert len(store.entries()[0]) == 4


def test_what_only_python_can_say_is_run_and_not_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = cosim.loads(SCENARIO)
    made = cosim.Scenario(
        topology=scenario.topology.build(scenario.context),  # type: ignore[union-attr]
        network="fair_share",
        jobs=scenario.jobs,
    )
    assert cosim.run(made, store=tmp_path / "store").digest == cosim.run(scenario).digest
    assert "not in the store: a Topology made in Python" in caplog.text
    with pytest.raises(InputError, match="at an address is not known"):
        question_of(scenario.with_settings({"network": {"model": "remote", "address": "unix:/nowhere"}}))


def test_runs_are_listed_shown_and_pruned(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    cosim.sweep(cosim.Sweep.load(write_sweep(tmp_path)), store=store)
    cosim.run(SCENARIO, {"network": "congestion_unaware", "name": "other"}, store=store)

    def said(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["runs", *arguments, "--store", store], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    def count(*where: str) -> int:
        return int(said("list", *(x for one in where for x in ("--where", one))).splitlines()[-1].split()[0])

    assert (count(), count("seed=1"), count("network.model=fair_share"), count("name=other")) == (5, 2, 4, 1)
    assert count("topology.rate=40Gbps", "jobs[0].workload.kind=collective") == 2
    table = said("list", "--csv").splitlines()
    assert len(table) == 6
    assert table[0].startswith("id,created,name,seed,network,version")
    id_ = open_store(store).entries()[0][0].id
    shown = said("show", id_[:10])
    assert f"run      {id_}" in shown
    assert "all_reduce" in shown
    assert "0 of 5 runs removed" in said("prune")
    assert "4 of 5 runs would be removed" in said("prune", "--where", "network=fair_share", "--dry-run")
    assert "0 of 5" in said("prune", "--older", "1d")
    assert "0 of 5" in said("prune", "--other-versions")
    assert "4 of 5 runs removed" in said("prune", "--where", "network=fair_share")
    assert count() == 1
    assert len([*Path(store, "parts").iterdir()]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list"], "there is no store here"),
        (["show", "abc"], "there is no store here"),
        (["list", "--where", "seed"], "there is no '='"),
        (["show", "zzz"], "no run begins with 'zzz'"),
        (["prune", "--older", "soon"], "--older soon"),
    ],
)
def test_mistakes_are_said(tmp_path: Path, arguments: list[str], message: str) -> None:
    if message != "there is no store here":
        open_store(tmp_path / "store")
    result = CliRunner().invoke(app, ["runs", *arguments, "--store", str(tmp_path / "store")])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_a_store_where_none_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.*can't make a store"):
        open_store(tmp_path / "file")
    with pytest.raises(InputError, match="nowhere://"):
        place_of("nowhere://bucket")
    (tmp_path / "store.json").write_text("{}")
    with pytest.raises(InputError, match=r"store\.json is not what cosim wrote"):
        open_store(tmp_path)


def test_what_writers_that_died_have_left_goes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cosim.run(SCENARIO, store=tmp_path / "store")
    old, new = (tmp_path / "store" / "runs" / f".writing-{name}" for name in ("old", "new"))
    for path in (old, new):
        path.write_text("")
    os.utime(old, (0, 0))
    orphan = tmp_path / "store" / "parts" / "aa" / "aaaa-bbbb" / "summary.json"
    orphan.parent.mkdir(parents=True)
    orphan.write_text("")
    assert open_store(tmp_path / "store").clear() == 2
    assert new.exists()
    assert not old.exists()
    assert not orphan.parent.exists()
    assert isinstance(cosim.run(SCENARIO, store=tmp_path / "store"), StoredRun)
