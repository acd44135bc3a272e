"""``cosim new``: three answers make a scenario that runs, or one says what doesn't go."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.cli.new import _GPUS, scenario_text
from cosim.errors import InputError
from cosim.registry import find, names
from cosim.topology.systems import System


def test_three_answers_make_a_scenario_that_runs(tmp_path: Path) -> None:
    file = tmp_path / "first.yaml"
    answers = ["--job", "all_reduce 64MB", "--gpus", "16 dgx-h100", "--network", "dcqcn"]
    done = CliRunner().invoke(app, ["new", str(file), *answers])
    assert done.exit_code == 0, done.output
    run = cosim.run(cosim.load(file))
    assert run.summary.name == "first"
    # Ring or tree, 16 GPUs can't be quicker than 2 (n-1)/n of the bytes over a host's 8 NICs of 400 Gbit/s.
    took_ps = run.summary.jobs[0].iteration_mean_ps
    assert took_ps is not None
    assert took_ps > 64e6 * 8 / 3200e9 * 1e12


def test_it_asks_on_a_terminal_and_takes_what_is_typed(tmp_path: Path) -> None:
    file = tmp_path / "typed.yaml"
    lead, follow = pty.openpty()
    asking = subprocess.Popen(
        [sys.executable, "-m", "cosim", "new", str(file)], stdin=follow, stdout=follow, stderr=follow
    )
    os.close(follow)
    seen = b""
    for prompt, answer in ((b"What runs?", b"bert-base\n"), (b"how many", b"\n"), (b"Which network", b"\n")):
        while prompt not in seen:
            seen += os.read(lead, 1024)
        os.write(lead, answer)
    assert asking.wait() == 0, seen
    os.close(lead)
    scenario = cosim.load(file)
    assert "model: bert-base" in file.read_text()
    assert "hosts: 2 " in file.read_text()
    assert scenario.network.name == "fair_share"


def test_every_model_and_system_makes_a_scenario() -> None:
    systems = [
        name
        for name in names("cosim.topologies")
        if isinstance(kind := find("cosim.topologies", name), type) and issubclass(kind, System)
    ]
    assert sorted(_GPUS) == sorted(systems)
    for system in systems:
        gpus = find("cosim.topologies", system).sheet.gpus
        assert f"hosts: 2  # of {gpus}" in scenario_text("vgg-16", f"{2 * gpus} {system}", "hpcc", Path())


@pytest.mark.parametrize("network", ["congestion", "ns3_rdma"])
def test_a_network_that_needs_a_control_gets_one(network: str) -> None:
    text = scenario_text("all_reduce 1MB", "8 dgx-h100", network, Path())
    assert f"  model: {network}\n  control: dcqcn  # or another: cosim list control\n" in text


def test_a_model_is_cut_so_that_it_fits() -> None:
    assert "parallel: {fsdp: 16}" in scenario_text("llama3-8b", "16 dgx-h100", "fair_share", Path())
    large = scenario_text("llama2-70b", "16 dgx-h100", "fair_share", Path())
    assert "parallel: {tp: 4, fsdp: 4}" in large
    assert "recompute: full" in large


@pytest.mark.parametrize(
    ("job", "gpus", "network", "says"),
    [
        (
            "llama3-8",
            "16 dgx-h100",
            "fair_share",
            "no script 'llama3-8'; did you mean 'llama3-8b'?",
        ),
        ("all_reduce", "16 dgx-h100", "fair_share", "'all_reduce' has no size"),
        ("all_reduce 1X", "16 dgx-h100", "fair_share", "needs a size unit"),
        ("absent.py", "16 dgx-h100", "fair_share", "there is no script absent.py"),
        ("llama3-8b", "12 dgx-h100", "fair_share", "12 GPUs don't fill hosts of 8 (dgx-h100)\n  8 or 16 do"),
        ("llama3-8b", "8 gb200-nvl72", "fair_share", "8 GPUs don't fill hosts of 72 (gb200-nvl72)\n  72 do"),
        ("llama3-8b", "many dgx-h100", "fair_share", "is not a number and a system"),
        ("llama3-8b", "16 dgxh100", "fair_share", "there is no system 'dgxh100'; did you mean 'dgx-h100'?"),
        ("llama3-8b", "16 dgx-h100", "fair", "no network and no control 'fair'; did you mean 'fair_share'?"),
        ("llama3-405b", "16 dgx-h100", "fair_share", "llama3-405b does not fit on 16 GPUs of dgx-h100"),
    ],
)
def test_answers_that_do_not_go_are_named(job: str, gpus: str, network: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        scenario_text(job, gpus, network, Path("/nowhere"))
    assert says in str(caught.value)


def test_a_file_is_never_replaced_and_what_lacks_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    done = CliRunner().invoke(app, ["new", str(file)])
    assert isinstance(done.exception, InputError)
    assert "mine.yaml exists" in str(done.exception)
    assert file.read_text() == "mine"
    done = CliRunner().invoke(app, ["new", str(tmp_path / "new.yaml")])
    assert isinstance(done.exception, InputError)
    assert "--job is missing" in str(done.exception)
    assert not (tmp_path / "new.yaml").exists()
