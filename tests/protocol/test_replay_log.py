"""What a log keeps, in how many bytes, and what goes on where it ends early."""

import errno
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosim.errors import ServerDiedError
from cosim.network.simulator import NetworkSimulator
from cosim.protocol import replay_log
from cosim.protocol.client import RemoteNetwork, connect
from cosim.protocol.replay_log import LoggedAdvance, LogReader, LogWriter, pack, unpack
from cosim.protocol.server import Server
from cosim.protocol.settings import Target
from tests.protocol.small_run import GOOD, Hooked, patient, run

MESSAGES = st.lists(st.binary(max_size=20), max_size=3).map(tuple)


@given(st.lists(st.builds(LoggedAdvance, MESSAGES, MESSAGES, MESSAGES, st.just(7)), max_size=20))
def test_a_block_gives_back_its_exchanges_byte_by_byte(exchanges: list[LoggedAdvance]) -> None:
    assert unpack(pack(exchanges), 7) == exchanges


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of some twenty exchanges."""
    monkeypatch.setattr(replay_log, "BLOCK_BYTES", 4000)


@pytest.mark.usefixtures("blocks")
def test_a_log_cut_anywhere_holds_the_blocks_before_the_cut(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    address, log = serve().address, tmp_path / "log"
    network = connect(address)
    network.log_to(log)
    right = run(network).digest
    network.close()
    whole, exchanges = log.read_bytes(), [*LogReader(log).exchanges()]
    ends = sorted({one.end for one in exchanges})
    assert 3 < len(ends) < len(exchanges) / 4
    messages = [message for one in exchanges for message in (*one.requests, *one.answers)]
    assert len(whole) < sum(map(len, messages)) / 2
    for cut in (ends[0] - 1, ends[1], ends[2] + 40, len(whole) - 1):
        log.write_bytes(whole[:cut])
        assert [*LogReader(log).exchanges()] == [one for one in exchanges if one.end <= cut]
        network = connect(address)
        network.log_to(log, resume=True)
        assert run(network).digest == right
        network.close()
        assert LogReader(log).path.read_bytes()[: ends[0]] == whole[: ends[0]]


def no_room(self: LogWriter, data: bytes) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("ends", ["a full disk", "its bound"])
def test_a_log_that_ends_early_takes_only_recovery_from_the_run(
    ends: str,
    serve: Callable[..., Server],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right, log = run().digest, tmp_path / "log"

    def end(count: int) -> None:
        if count == 40 and ends == "a full disk":
            monkeypatch.setattr(LogWriter, "_write", no_room)
        elif count == 40:
            monkeypatch.setattr(replay_log, "MOST_BYTES", log.stat().st_size + 20)

    def logged(inner: NetworkSimulator) -> Hooked:
        return Hooked(inner, end)

    address = serve().address
    network = connect(address)
    network.log_to(log)
    with caplog.at_level(logging.WARNING):
        assert run(logged(network)).digest == right
    network.close()
    assert caplog.text.count("if the server dies, the run can't go on by itself") == 1
    monkeypatch.undo()
    again = connect(address)
    again.log_to(log, resume=True)
    assert run(again).digest == right
    again.close()


@pytest.mark.usefixtures("blocks")
def test_a_server_that_dies_after_its_log_has_ended_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_log, "MOST_BYTES", 1500)
    network = RemoteNetwork(Target(command=GOOD), policy=patient())
    network.log_to(tmp_path / "log")

    def kill(count: int) -> None:
        process = network.session.process
        if count == 60 and process is not None:
            os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(ServerDiedError, match=r"its log .*log has ended: it holds 0 MiB"):
        run(Hooked(network, kill))
    network.close()
