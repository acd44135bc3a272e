"""A run over a server that misbehaves ends in a named error, or comes to the right result."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from small_run import Hooked, run

from cosim.errors import (
    CosimError,
    DeadlineError,
    DivergenceError,
    LaunchError,
    OverloadError,
    ProtocolError,
    ServerDiedError,
    VersionError,
)
from cosim.protocol.client import RemoteNetwork, connect
from cosim.protocol.conformance.faulty import faulty
from cosim.protocol.launcher import Launched
from cosim.protocol.server import Server
from cosim.protocol.settings import Patience
from cosim.protocol.settings import Server as Where

Serve = Callable[..., Server]
GOOD = (sys.executable, "-m", "cosim.cli", "serve", "--network", "congestion_aware")
FAULTY = (sys.executable, "-m", "cosim.protocol.conformance.faulty", "--fault")
RIGHT = "the same result"
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def right() -> str:
    return run().digest


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("version", VersionError),
        ("time_back", ProtocolError),
        ("beyond_grant", ProtocolError),
        ("unknown_id", ProtocolError),
        ("wrong_digest", ProtocolError),
        ("split_instant", ProtocolError),
        ("slow", DeadlineError),
        ("frozen", DeadlineError),
        ("reorder", RIGHT),
    ],
)
def test_a_fault_ends_in_its_named_error(
    serve: Serve, fault: str, expected: type[CosimError] | str, right: str
) -> None:
    pause = threading.Event()

    def before(count: int) -> None:
        if count == 30 and fault == "frozen":
            pause.wait(0.5)  # it freezes when it is left alone

    address = serve(make_session=faulty(fault)).address
    network = RemoteNetwork(Where(address=address), patience=Patience(answer_s=0.4))
    if isinstance(expected, str):
        assert run(Hooked(network, before)).digest == right
        return
    with pytest.raises(expected):
        run(Hooked(network, before))
    network.close()


def test_an_overloaded_server_is_named(serve: Serve) -> None:
    with pytest.raises(OverloadError):
        run(connect(serve(max_open_flows=1).address))


def test_a_server_that_crashes_is_brought_back_again_and_again(right: str, tmp_path: Path) -> None:
    """It dies at the 50th answer of every session."""
    network = RemoteNetwork(Where(command=(*FAULTY, "crash")), patience=Patience(most_deaths=50))
    assert run(network).digest == right
    assert network.line.deaths >= 2
    assert network.line.replays <= 2 * network.line.deaths


def test_a_server_that_dies_ten_times_at_random_moments_changes_nothing(right: str) -> None:
    network = RemoteNetwork(Where(command=GOOD), patience=Patience(most_deaths=20))
    total = Hooked(connect_counter(), lambda _: None)
    rng = random.Random(7)
    moments = sorted(rng.sample(range(2, total.count_of_run()), 10))
    timers = []

    def before(count: int) -> None:
        if count in moments:
            process = network.line.process
            assert process is not None
            timer = threading.Timer(rng.random() * 0.002, kill, [process.pid])
            timers.append(timer)
            timer.start()

    assert run(Hooked(network, before)).digest == right
    for timer in timers:
        timer.join()
    assert 5 <= network.line.deaths <= 10  # two moments may meet before it is noticed
    assert network.line.replays <= 2 * network.line.deaths


class connect_counter:  # noqa: N801
    """How many advances a run takes."""

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_client_killed_ten_times_goes_on_from_its_log(serve: Serve, right: str, tmp_path: Path) -> None:
    address, log = serve().address, tmp_path / "injections.log"
    moments = sorted(random.Random(3).sample(range(2, 150), 10))
    command = [sys.executable, str(HERE / "small_run.py"), address, str(log)]
    for moment in moments:
        died = subprocess.run([*command, str(moment)], capture_output=True, text=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr
    done = subprocess.run([*command, "-1"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == right
