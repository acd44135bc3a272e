"""Scripts that can't be profiled as they are: one line, the script's line, and what to do."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.errors import WorkloadError
from cosim.profiler.launch import ProfileRequest, profile
from tests.cli.processes import OWN, PATIENCE_S, all_gone, wait_for
from tests.profiler.profiled import needs_torch
from tests.profiler.test_values import TRAIN, refused

pytestmark = needs_torch


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("torch.cuda.set_device(8)", 2, ["invalid device ordinal: cuda:8, of 4 GPUs", "--per-node"]),
        ("torch.zeros(2, device='cuda:9')", 2, ["invalid device ordinal: cuda:9", "--per-node"]),
        ("open('tokens.bin')", 2, ["tokens.bin", "in the folder where cosim is run"]),
        (
            "import urllib.request\nurllib.request.urlopen('http://no-such-host.invalid/')",
            3,
            ["URLError", "needs the network"],
        ),
        ("raise SystemExit('--data is missing')", 2, ["stopped itself", "--data is missing"]),
    ],
)
def test_what_a_script_may_not_ask_for(tmp_path: Path, body: str, line: int, said: list[str]) -> None:
    text = refused(tmp_path, body + "\n")
    assert f"train.py:{line} in <module>" in text
    for each in said:
        assert each in text


def test_a_package_without_what_is_compiled_of_it(tmp_path: Path) -> None:
    """A part of whose operators nothing is known; of some that is (`test_extensions.py`)."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "__init__.py").write_text("import served._kernels\n")
    text = refused(tmp_path, "import served\n")
    assert "train.py:2 in <module>" in text
    assert "served is installed without _kernels" in text
    assert "transformers" in text


def test_a_fork_of_the_script_answers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import os, torch\nif os.fork() == 0:\n    raise SystemExit(3)\nos.wait()\n" + TRAIN)
    made, _ = profile(ProfileRequest(str(path)))
    assert made.world_size == 1
    path.write_text("import os\nif os.fork():\n    os.wait()\n")
    with pytest.raises(WorkloadError, match="started 1 processes of its own"):
        profile(ProfileRequest(str(path)))


_LEAVES = """
import os, pathlib, time, torch
def start(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            pathlib.Path(FOLDER, name).write_text(str(os.getpid()))
            time.sleep(10_000)
        os._exit(0)
    os.wait()
    while not (pathlib.Path(FOLDER, name).exists() and pathlib.Path(FOLDER, name).read_text()):
        time.sleep(0.01)
start("daemon")
"""
"""A process of another session, whose parent has ended."""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are followed on Linux only")


@on_linux
@pytest.mark.parametrize("end", [TRAIN, "os.kill(os.getpid(), 9)\n"], ids=["trains", "is killed"])
def test_what_a_script_leaves_running_ends_with_it(tmp_path: Path, end: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(_LEAVES.replace("FOLDER", repr(str(tmp_path))) + end)
    if end == TRAIN:
        profile(ProfileRequest(str(path)))
    else:
        with pytest.raises(WorkloadError, match=r"exit code -9"):
            profile(ProfileRequest(str(path)))
    assert all_gone([int((tmp_path / "daemon").read_text())])


@on_linux
@pytest.mark.parametrize(("rank", "number"), [(0, signal.SIGKILL), (3, signal.SIGKILL), (3, signal.SIGSEGV)])
def test_a_rank_that_is_killed_is_named_and_the_others_end(
    tmp_path: Path, rank: int, number: signal.Signals
) -> None:
    """While the others wait for what it would have said."""
    path = tmp_path / "train.py"
    own = f"pathlib.Path({str(tmp_path)!r}, f'own{{rank}}').write_text(str(os.getpid()))"
    path.write_text(
        "import os, pathlib, torch, torch.distributed as dist\ndist.init_process_group('nccl')\n"
        f"rank = dist.get_rank()\n{own}\n"
        f"if rank == {rank}: os.kill(os.getpid(), {int(number)})\n"
        "dist.all_gather_object([None] * 4, os.getpid())\n" + TRAIN
    )
    with pytest.raises(WorkloadError) as caught:
        profile(ProfileRequest(str(path), world_size=4, verify=True))
    text = str(caught.value)
    assert f"train.py: rank {rank}'s process was ended by {number.name} without an answer" in text
    assert ("free some, or take a smaller model" if number == signal.SIGKILL else "--show-output") in text
    assert all_gone([int(each.read_text()) for each in tmp_path.glob("own*")])


@on_linux
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
    ids=["killed", "interrupted"],
)
def test_a_command_that_is_ended_leaves_nothing_running(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "train.py"
    own = f"pathlib.Path({str(tmp_path)!r}, 'own').write_text(str(os.getpid()))"
    path.write_text(_LEAVES.replace("FOLDER", repr(str(tmp_path))) + f"{own}\ntime.sleep(10_000)\n")
    command = subprocess.Popen(
        [sys.executable, "-c", OWN, "profile", str(path), "-o", str(tmp_path / "job.yaml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for("the script's process", lambda: (tmp_path / "own").exists() or command.poll() is not None)
        wait_for("its number", (tmp_path / "own").read_text)
        command.send_signal(number)
        command.wait(PATIENCE_S)
    finally:
        command.kill()
    left = [int((tmp_path / name).read_text()) for name in ("daemon", "own")]
    wait_for("the end of all that it started", lambda: all_gone(left))


@pytest.mark.slow  # its variable needs another process that imports torch
def test_a_script_that_waits_is_said_to_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSIM_PROFILE_SILENCE_S", "1")
    path = tmp_path / "train.py"
    until = f"os.access({str(tmp_path / 'told')!r}, os.F_OK) or time.monotonic() > ends"
    head = f"import os, time, torch; ends = time.monotonic() + {PATIENCE_S}"
    path.write_text(f"{head}\nwhile not ({until}): time.sleep(0.05)\n" + TRAIN)
    said: list[str] = []

    def hear(text: str) -> None:
        said.append(text)
        if "no operator" in text:
            (tmp_path / "told").touch()

    profile(ProfileRequest(str(path)), hear)
    assert any("no operator for 1 s, at train.py:2: does it wait" in text for text in said), said
