from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers of this process, each on a socket of its own; ends them."""
    with ExitStack() as stack:
        count = 0

        def start(
            make: Any = CongestionAwareNetwork, *, make_session: Any = None, tls: Any = None, **served: Any
        ) -> Server:
            nonlocal count
            count += 1
            extra = {"make_session": make_session} if make_session is not None else {}
            where = f"unix:{tmp_path / f's{count}'}" if tls is None else "127.0.0.1:0"
            return stack.enter_context(Server(ServerConfig(make, **served), where, tls=tls, **extra))

        yield start


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of faults: what tests recorded as ``fault``, (what was done, how it ended)."""
    rows = [
        (*value, outcome)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if report.when == "call"
        for name, value in report.user_properties
        if name == "fault"
    ]
    if not rows:
        return
    width = max(len(what) for what, _, _ in rows)
    terminalreporter.section("faults tried and how they ended")
    for what, ended, outcome in rows:
        text = ended if outcome == "passed" else f"NOT AS IT SHOULD: {ended}"
        terminalreporter.write_line(f"{what:<{width}}  {text}")
    survived = sum(outcome == "passed" for *_, outcome in rows)
    terminalreporter.write_line(f"{survived} of {len(rows)} ended as they should")
