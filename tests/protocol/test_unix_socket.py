"""A server takes a socket's path only where nobody answers, and removes only its own."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cosim.errors import LaunchError
from cosim.network.aware import CongestionAwareNetwork
from cosim.protocol.client import connect
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig


def server(path: Path) -> Server:
    return Server(ServerConfig(CongestionAwareNetwork), f"unix:{path}")


def answers(path: Path) -> bool:
    network = connect(f"unix:{path}")
    try:
        return bool(network.describe().name)
    finally:
        network.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


def test_a_file_is_not_replaced(path: Path) -> None:
    path.write_text("thesis")
    with pytest.raises(LaunchError, match="a file and no socket"):
        server(path)
    assert path.read_text() == "thesis"
    assert [*path.parent.iterdir()] == [path]


def test_a_socket_that_somebody_answers_on_is_not_taken(path: Path) -> None:
    with server(path):
        with pytest.raises(LaunchError, match="a server answers there"):
            server(path)
        assert answers(path)
    assert [*path.parent.iterdir()] == []


def test_a_socket_that_nobody_answers_on_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with server(path):
        assert answers(path)


def test_the_end_of_a_server_leaves_the_next_ones_socket(path: Path) -> None:
    with server(path) as first:
        path.unlink()
        with server(path):
            first.stop()
            assert answers(path)
