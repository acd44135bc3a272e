from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.protocol.server import Server
from cosim.protocol.session import Served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers of this process, each on a socket of its own; ends them."""
    with ExitStack() as stack:
        count = 0

        def start(make: Any = CongestionAwareNetwork, *, make_session: Any = None, **served: Any) -> Server:
            nonlocal count
            count += 1
            extra = {"make_session": make_session} if make_session is not None else {}
            server = Server(Served(make, **served), f"unix:{tmp_path / f's{count}'}", **extra)
            return stack.enter_context(server)

        yield start
