"""A run over a server that misbehaves ends in a named error, or comes to the right result."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cosim.errors import (
    DeadlineError,
    DivergenceError,
    LaunchError,
    OverloadError,
    ServerDiedError,
)
from cosim.network.flows import FlowBatch, FlowGroup, flat_table
from cosim.protocol.client import RemoteNetwork, connect
from cosim.protocol.connection import Connection
from cosim.protocol.launcher import ServerProcess
from cosim.protocol.server import Server
from cosim.protocol.settings import FailurePolicy, Target
from cosim.protocol.v1 import network_simulator_pb2 as pb
from cosim.testing.conformance.cases import star
from tests.cli.processes import PATIENCE_S, is_gone, wait_for
from tests.inputs import ROOT
from tests.protocol.small_run import GOOD, SCENARIO, Hooked, Killer, moments, patient, recovered, run

Serve = Callable[..., Server]
Record = Callable[[str, object], None]
FAULTY = (sys.executable, "-m", "cosim.testing.conformance.faulty_server", "--fault")
RIGHT = "the same result"
kills = pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.slow)])
"""Each takes a process that imports all of cosim: ten of them wait for the slow step."""


@pytest.fixture(scope="module")
def right() -> str:
    return run().digest


def test_an_overloaded_server_is_named(serve: Serve, record_property: Record) -> None:
    with pytest.raises(OverloadError, match="max_open_flows") as caught:
        run(connect(serve(max_open_flows=1).address))
    record_property("fault", ("room for one flow", f"OverloadError: {caught.value}"[:110]))


@pytest.mark.slow
def test_a_server_that_crashes_is_brought_back_again_and_again(right: str, record_property: Record) -> None:
    """It dies at the 50th answer of every session."""
    network = RemoteNetwork(Target(command=(*FAULTY, "crash")), policy=patient(most_deaths=50))
    assert run(network).digest == right
    session = network.session
    record_property("fault", ("crashes at each 50th answer", recovered(session.deaths, session.replays)))
    assert session.deaths >= 2
    assert session.replays <= 2 * session.deaths


@kills
@pytest.mark.parametrize("release", [pytest.param("engine", marks=pytest.mark.slow), "network"])
def test_a_server_killed_at_random_moments_changes_nothing(
    right: str, release: str, count: int, record_property: Record
) -> None:
    """Between two calls, or with a call sent and not answered."""
    network = RemoteNetwork(Target(command=GOOD), policy=patient())
    calls = run(RemoteNetwork(Target(command=GOOD), policy=patient()), release=release).records.info[
        "advances"
    ]
    killer = Killer(network, moments(7, calls, count))
    assert run(Hooked(network, killer), release=release).digest == right
    session = network.session
    record_property(
        "fault",
        (f"kill -9 of cosim serve, released by the {release}", recovered(session.deaths, session.replays)),
    )
    assert session.deaths == len(killer.killed) == count
    assert session.replays <= 2 * session.deaths


@pytest.mark.slow
@kills
def test_a_client_killed_at_random_moments_goes_on_from_its_log(
    serve: Serve, right: str, tmp_path: Path, count: int, record_property: Record
) -> None:
    """`cosim run --out DIR`, killed, then `cosim run --resume DIR`, killed again ..."""
    scenario, out = tmp_path / "run.yaml", tmp_path / "out"
    text = SCENARIO.replace("network: congestion_aware", f"network: {{address: '{serve().address}'}}")
    scenario.write_text(f"{text}release: engine\n")
    command = [sys.executable, "-m", "tests.protocol.small_run"]
    begin, go_on = ["run", str(scenario), "--out", str(out)], ["run", "--resume", str(out)]
    for number, moment in enumerate(moments(3, run().records.info["advances"], count)):
        arguments = [str(moment), *(go_on if number else begin)]
        died = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr
    done = subprocess.run([*command, "-1", *go_on], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "summary.json").read_text())["digest"] == right
    record_property("fault", (f"kill -9 of cosim run, {count} times", "cosim run --resume: the same digest"))


def test_a_frozen_process_is_noticed_and_replaced(right: str, record_property: Record) -> None:
    """SIGSTOP: it is there, but answers nothing, not even pings."""
    policy = patient(
        keepalive_s=1.0, most_deaths=1000
    )  # on a busy machine others may be late to answer pings
    network = RemoteNetwork(Target(command=GOOD), policy=policy)

    def before(count: int) -> None:
        if count == 20:
            assert network.session.process is not None
            os.kill(network.session.process.pid, signal.SIGSTOP)

    assert run(Hooked(network, before)).digest == right
    deaths = network.session.deaths
    assert deaths >= 1
    record_property("fault", ("SIGSTOP: no answer to pings", recovered(deaths, network.session.replays)))


def late(monkeypatch: pytest.MonkeyPatch, *, once: bool) -> None:
    """No answer is in time from now on, or the next one isn't. The clock is not asked."""
    receive = Connection.receive

    def overdue(self: Connection, _: float | None = None) -> bytes:
        if once:
            monkeypatch.setattr(Connection, "receive", receive)
        raise self._late(4.0)

    monkeypatch.setattr(Connection, "receive", overdue)


@pytest.mark.parametrize("called", ["advance", pytest.param("statistics", marks=pytest.mark.slow)])
def test_a_server_that_is_late_is_replaced_whether_pings_tell_or_not(
    right: str, called: str, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    network = RemoteNetwork(Target(command=GOOD), policy=patient())
    ask = network.session.ask

    def before(count: int) -> None:
        if count == 20 and called == "advance":
            late(monkeypatch, once=True)

    def asked(request: pb.SessionRequest) -> pb.SessionResponse:
        if called == "statistics":
            late(monkeypatch, once=True)
        return ask(request)

    network.session.ask = asked  # type: ignore[method-assign]
    assert run(Hooked(network, before)).digest == right
    session = network.session
    assert session.deaths == 1
    record_property("fault", (f"no answer in time to {called}", recovered(1, session.replays)))


@pytest.mark.slow
def test_servers_that_are_always_late_end_the_run(
    monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    network = RemoteNetwork(Target(command=GOOD), policy=patient(most_deaths=1))

    def before(count: int) -> None:
        if count == 20:
            late(monkeypatch, once=False)

    with pytest.raises(
        ServerDiedError, match=r"did not answer within 4 s .*it died 2 times without"
    ) as caught:
        run(Hooked(network, before))
    record_property("fault", ("no answer is in time", f"ServerDiedError: {caught.value}"[:110]))


def test_a_server_at_an_address_that_is_late_ends_the_run(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody here could start it again."""
    network = RemoteNetwork(Target(address=serve().address), policy=patient())

    def before(count: int) -> None:
        if count == 20:
            late(monkeypatch, once=True)

    with pytest.raises(DeadlineError, match="did not answer within 4 s"):
        run(Hooked(network, before))
    assert network.session.deaths == 0


def test_a_server_at_an_address_that_freezes_is_waited_for_and_named(
    caplog: pytest.LogCaptureFixture, record_property: Record
) -> None:
    """Pings are answered by nobody, either; they don't end the wait."""
    process = ServerProcess(GOOD, timeout_s=PATIENCE_S)
    try:
        policy = patient(answer_s=3.0, keepalive_s=1.0)
        network = RemoteNetwork(Target(address=process.address), policy=policy)

        def before(count: int) -> None:
            if count == 20:
                os.kill(process.pid, signal.SIGSTOP)

        with pytest.raises(DeadlineError, match="within 3 s: it is frozen, or needs a longer answer_timeout"):
            run(Hooked(network, before))
        assert network.session.deaths == 0
        assert "again" not in caplog.text
    finally:
        os.kill(process.pid, signal.SIGCONT)
        process.stop()
    record_property("fault", ("SIGSTOP of a server at an address", "DeadlineError: it is frozen"))


def dying(starts: Path, lives: str) -> Target:
    """``cosim serve``, but those that ``lives`` has no ``y`` for end when they have said that they listen."""
    starts.write_text("0")
    script = (
        f"n=$(cat {starts}); echo $((n + 1)) > {starts}; lives={lives}; shift; "
        'case $(printf %s "$lives" | cut -c$((n + 1))) in y) exec "$@";; esac; '
        'for where; do :; done; echo LISTENING "$where"'
    )
    return Target(command=("/bin/sh", "-c", script, "sh", "--", *GOOD))


def killed_at(network: RemoteNetwork, *calls: int) -> Hooked:
    def before(count: int) -> None:
        if count in calls:
            assert network.session.process is not None
            os.kill(network.session.process.pid, signal.SIGKILL)

    return Hooked(network, before)


@pytest.mark.slow
def test_a_server_that_dies_before_the_session_is_open_is_replaced(
    right: str, record_property: Record
) -> None:
    network = RemoteNetwork(Target(command=GOOD), policy=patient())
    network.describe()
    assert network.session.process is not None
    os.kill(network.session.process.pid, signal.SIGKILL)
    assert run(network).digest == right
    record_property("fault", ("kill -9 between Describe and Opened", recovered(network.session.deaths, 0)))


@pytest.mark.slow
def test_a_replacement_that_dies_before_it_is_described_is_replaced(
    right: str, tmp_path: Path, record_property: Record
) -> None:
    policy = patient(start_s=1e6)  # what is gone is not waited for: that would take for ever
    network = RemoteNetwork(dying(tmp_path / "starts", "ynny"), policy=policy)
    assert run(killed_at(network, 9)).digest == right
    session = network.session
    assert session.deaths == 3
    record_property("fault", ("replacements that die at once", recovered(3, session.replays)))


def test_a_server_that_never_gets_further_ends_the_run(tmp_path: Path, record_property: Record) -> None:
    network = RemoteNetwork(dying(tmp_path / "starts", "ynnnnnnnn"), policy=patient())
    with pytest.raises(ServerDiedError, match="it died 4 times without getting any further"):
        run(killed_at(network, 9))
    record_property("fault", ("every replacement dies at once", "ServerDiedError after 4 deaths"))


@pytest.mark.parametrize("fault", ["random", pytest.param("unrepeatable", marks=pytest.mark.slow)])
def test_a_server_that_comes_to_something_else_is_a_divergence(fault: str, record_property: Record) -> None:
    """random: each time; unrepeatable: where 14 flows come at once, so that one by one it is right."""
    network = RemoteNetwork(Target(command=(*FAULTY, fault)), policy=patient())
    network.open(star(4))
    granted = 0
    zero = np.zeros(1, np.int64)
    for k in range(14):
        group = FlowGroup(k, flat_table([0], [1], [9000 + k]), np.arange(2, dtype=np.int32), (0, k))
        now = np.array([granted], np.int64)
        batch = FlowBatch([group], np.array([k], np.int32), zero, now, now)
        horizon = granted + 90_000_000
        while granted < horizon:
            granted, _ = network.advance(batch, horizon)
            batch = FlowBatch()
    assert network.session.process is not None
    network.session.process.kill()
    what = f"killed, and {fault} when replayed"
    if fault == "unrepeatable":
        assert network.advance(FlowBatch(), granted + 1_000_000_000).granted_ps == granted + 1_000_000_000
        record_property("fault", (what, f"recovered call by call: {network.session.replays} calls"))
    else:
        with pytest.raises(DivergenceError, match="when its log was replayed"):
            network.advance(FlowBatch(), granted + 1_000_000_000)
        record_property("fault", (what, "DivergenceError: came to another digest"))
    network.close()


def test_where_recovery_is_off_the_run_says_so_and_ends(
    caplog: pytest.LogCaptureFixture, record_property: Record
) -> None:
    network = RemoteNetwork(Target(command=GOOD), policy=patient(recover=False))

    def before(count: int) -> None:
        if count == 5:
            assert network.session.process is not None
            network.session.process.kill()

    with pytest.raises(ServerDiedError, match=r"killed by SIGKILL\); recovery is off"):
        run(Hooked(network, before))
    assert "recovery is off" in caplog.text
    record_property("fault", ("kill -9 where recovery is off", "said at the start; ServerDiedError"))


def test_another_run_does_not_go_on_from_a_log(serve: Serve, tmp_path: Path) -> None:
    address = serve().address

    def before(count: int) -> None:
        if count == 9:
            raise KeyboardInterrupt

    network = connect(address)
    network.log_to(tmp_path / "log")
    run(Hooked(network, before))
    other = connect(address)
    other.log_to(tmp_path / "log", resume=True)
    with pytest.raises(DivergenceError, match="not the same run"):
        run(other, release="network")


def test_no_server_is_said_at_once() -> None:
    with pytest.raises(LaunchError, match="no network simulator at unix:/nowhere"):
        RemoteNetwork(Target(address="unix:/nowhere"), policy=FailurePolicy(start_s=0.3)).describe()


# -- starting servers -------------------------------------------------------------------------------


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def test_a_server_that_ends_at_once_shows_its_last_words() -> None:
    with pytest.raises(LaunchError, match=r"(?s)ended with exit code 3 before it listened.*no such port"):
        ServerProcess(shell("echo no such port >&2; exit 3"))


def test_a_server_that_says_nothing_is_given_up_and_ended() -> None:
    with pytest.raises(ServerDiedError, match=r"did not say LISTENING within 0\.2 s"):
        ServerProcess(shell("sleep 60"), timeout_s=0.2)


def dying_at_first(flag: Path, times: int, how: str) -> tuple[str, ...]:
    """A command that ends otherwise so many times, then serves."""
    count = f'n=$(cat {flag} 2>/dev/null || echo 0); echo $((n + 1)) > {flag}; [ "$n" -ge {times} ] || {how}'
    return (*shell(f'{count}; exec {shlex.join(GOOD)} "$@"'), "server")


def test_servers_that_are_killed_before_they_listen_are_replaced(tmp_path: Path) -> None:
    network = RemoteNetwork(Target(command=dying_at_first(tmp_path / "n", 2, "kill -9 $$")), policy=patient())
    assert run(network).records.digest == run().records.digest
    assert network.session.deaths == 2


def test_servers_that_freeze_before_they_listen_are_given_up_when_too_many_do() -> None:
    policy = FailurePolicy(start_s=0.2, most_deaths=2)
    network = RemoteNetwork(Target(command=shell("sleep 60")), policy=policy)
    with pytest.raises(ServerDiedError, match=r"did not say LISTENING within 0\.2 s; it died 3 times"):
        network.describe()
    assert network.session.deaths == 3


def test_a_server_that_ends_by_itself_is_not_started_again(tmp_path: Path) -> None:
    network = RemoteNetwork(Target(command=dying_at_first(tmp_path / "n", 9, "exit 3")), policy=patient())
    with pytest.raises(LaunchError, match="exit code 3"):
        network.describe()
    assert (tmp_path / "n").read_text().strip() == "1"


def test_no_such_program() -> None:
    with pytest.raises(LaunchError, match="can't start '/no/such'"):
        ServerProcess(["/no/such"])


def test_the_whole_group_is_ended() -> None:
    script = "trap '' TERM; sleep 60 & echo $! >&2; echo LISTENING unix:/x; wait; wait"
    one = ServerProcess(shell(script))
    while not (text := one.stderr_tail()):
        pass
    one.stop(grace_s=0.1)
    wait_for("its end", lambda: is_gone(int(text)))


def test_no_server_outlives_a_killed_client(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from cosim.protocol.launcher import ServerProcess\n"
        "print(ServerProcess(['/bin/sh', '-c', 'echo LISTENING unix:/x; exec sleep 60']).pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    wait_for("its end", lambda: is_gone(int(done.stdout)))
