"""``cosim analyse``: pages, files, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from tests.inputs import ROOT

RING = """
topology: {kind: ring, endpoints: 8, rate: 80Gbps, latency: 500ns}
network: fair_share
record: {messages: npz}
jobs: [{iterations: 4, workload: {kind: collective, collective: all_reduce, ranks: 8, size: 8MB}}]
"""


def analyse(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["analyse", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    cosim.run(cosim.loads(RING), out=folder / "run")
    return folder / "run"


def test_files_have_what_the_page_says(run: Path, tmp_path: Path) -> None:
    page = analyse(run, "--out", tmp_path / "out")
    assert "ring" in page
    assert (tmp_path / "out" / "page.txt").read_text() == page
    with (tmp_path / "out" / "pairs.csv").open() as file:
        pairs = list(csv.DictReader(file))
    # 2 (N - 1) / N of the buffer to each neighbour, in each of four iterations.
    assert [int(row["size_bytes"]) for row in pairs] == [4 * 14 * 1_000_000] * 8
    with (tmp_path / "out" / "over_time.csv").open() as file:
        assert sum(int(row["size_bytes"]) for row in csv.DictReader(file)) == 8 * 4 * 14 * 1_000_000
    value = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert value["analyses"][0]["parts"][0]["patterns"][0]["name"] == "ring"


def test_a_run_beside_itself_and_beside_its_scenario_is_the_same(run: Path, tmp_path: Path) -> None:
    (tmp_path / "ring.yaml").write_text(RING)
    for arguments in ((run, run), (run, "--against", tmp_path / "ring.yaml")):
        (one,) = json.loads(analyse(*arguments, "--json"))["beside"]
        assert (one["bytes_ratio"], one["cosine"], one["ks"], one["wasserstein"]) == (
            1,
            pytest.approx(1),
            0,
            0,
        )


def test_logs_stand_beside_the_collectives_that_a_scenario_has(tmp_path: Path) -> None:
    (tmp_path / "ring.yaml").write_text(RING)
    cosim.translate(tmp_path / "ring.yaml", "inspector", tmp_path / "logs")
    against = tmp_path / "logs", "--against", tmp_path / "ring.yaml"
    (one,) = json.loads(analyse(*against, "--json"))["beside"]
    assert one["bytes_ratio"] == 1
    (row,) = one["collectives"]
    assert (row["kind"], row["num_ranks"], row["counts"]) == ("AllReduce", 8, [4, 4])
    # A ring's 2 (N - 1) steps of an eighth at 80 Gbps, and 500 ns each; the log has whole microseconds.
    assert row["means_ps"] == [pytest.approx(1_407_000_000, abs=2_000_000)] * 2
    assert "\nb has 2 times the bytes, in other collectives\n" in analyse(
        *against, "--set", "jobs[0].workload.size=4MB"
    )


def test_rings_that_nccl_logged_stand_beside_those_of_a_scenario(tmp_path: Path) -> None:
    files = ROOT / "docs" / "howto" / "files"
    against = ("--against", files / "two-hosts.yaml")
    said = json.loads(analyse(files / "nccl.log", *against, "--json"))
    (found,) = said["beside"]
    assert found["sentence"] == "b has rings of 4 of 4 channels as in a, 4 of 4 places in trees as in a"
    assert [one["channels"] for one in said["analyses"][1]["communicators"][0]["rings"]] == [[0, 2], [1, 3]]
    analyse(files / "nccl.log", *against, "--out", tmp_path / "out")
    ours, theirs = ((tmp_path / "out" / f"rings-{at}.csv").read_text().splitlines() for at in (1, 2))
    assert [row.rsplit(",", 1)[0] for row in ours] == [row.rsplit(",", 1)[0] for row in theirs]
    assert "0x7a2f,0,5,0,NET/IB/0/GDRDMA" in theirs


def test_twice_the_bytes_in_twice_the_time_is_said(run: Path, tmp_path: Path) -> None:
    (tmp_path / "ring.yaml").write_text(RING)
    page = analyse(run, "--against", tmp_path / "ring.yaml", "--set", "jobs[0].workload.size=4MB")
    assert "2 times the bytes, between the same pairs" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "nothing: No such file"),
        ([".", "--set", "seed=1"], "--set changes the scenario of --against"),
        ([Path(__file__).parent], "no format of captures knows it"),
    ],
)
def test_what_cannot_be_read_is_refused(arguments: list[str | Path], said: str) -> None:
    with pytest.raises(InputError, match=said):
        analyse(*arguments)


def test_a_run_without_messages_says_what_to_do(tmp_path: Path) -> None:
    cosim.run(cosim.loads(RING.replace("record: {messages: npz}", "")), out=tmp_path / "run")
    with pytest.raises(InputError, match=r"record\.messages=npz"):
        analyse(tmp_path / "run")


def test_models_are_set_beside_one_another() -> None:
    done = CliRunner().invoke(app, ["analyse", "--models", "vgg-16,resnet-50", "--json"])
    assert done.exit_code == 0, done.output
    vgg, resnet = json.loads(done.stdout)["analyses"]
    # A ring of 8 sends each gradient of 4 bytes 2 x 7 times in all; torchvision's numbers of parameters.
    assert vgg["size_bytes"] == pytest.approx(4 * 2 * 7 * 4 * 138_357_544, rel=1e-3)
    assert resnet["size_bytes"] == pytest.approx(4 * 2 * 7 * 4 * 25_557_032, rel=1e-3)
    page = CliRunner().invoke(app, ["analyse", "--models", "vgg-16,resnet-50"]).stdout
    assert "sizes: Kolmogorov-Smirnov" in page


@pytest.mark.parametrize(
    ("routing", "cause"),
    [("dmodk", {"kind": "slow link", "place": "leaf1:spine3"}), ("ecmp", {"kind": "paths collide"})],
)
def test_logs_and_counters_name_a_cause_together(routing: str, cause: dict[str, str], tmp_path: Path) -> None:
    world = ROOT / "scenarios" / "slow-link.yaml"
    changes = {"topology.routing": routing}
    cosim.translate(world, "inspector", tmp_path / "logs", set=changes)
    cosim.translate(world, {"kind": "counters", "every": "20us"}, tmp_path / "ports", set=changes)
    both = tmp_path / "logs", tmp_path / "ports" / "counters.csv"
    said = json.loads(analyse(*both, "--json"))
    assert said["cause"].items() >= cause.items()
    assert said["beside"] == []
    last = analyse(*both).splitlines()[-1]
    assert last.startswith(f"cause: {said['cause']['kind']}, {said['cause']['place']}: ")
    assert json.loads(analyse(both[0], "--json"))["cause"] is None
    assert "cause" not in analyse(both[1])


def test_no_cause_is_named_where_nothing_is_slow(tmp_path: Path) -> None:
    world = cosim.load(ROOT / "scenarios" / "slow-link.yaml", {"events": []})
    cosim.translate(world, "inspector", tmp_path / "logs")
    cosim.translate(world, {"kind": "counters", "every": "20us"}, tmp_path / "ports")
    both = tmp_path / "logs", tmp_path / "ports" / "counters.csv"
    assert analyse(*both).splitlines()[-1] == "cause: none, nothing is slow"


def test_nothing_to_analyse_says_what_there_is() -> None:
    done = CliRunner().invoke(app, ["analyse"])
    assert isinstance(done.exception, InputError)
    assert "--models" in str(done.exception)
