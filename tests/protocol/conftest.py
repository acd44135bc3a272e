from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cosim.network.aware import CongestionAwareNetwork
from cosim.protocol import replay_log
from cosim.protocol.server import Server
from cosim.protocol.session import ServerConfig


@pytest.fixture(autouse=True, scope="package")
def each_exchange_is_logged() -> Iterator[None]:
    """Runs here are short: their logs have a block for each exchange, so that they can be cut anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_log, "BLOCK_BYTES", 1)
        yield


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


_FAULT_FILES = ("test_faulty_runs", "test_faults", "test_tls", "test_ns3_session")
"""Where a test that fails is a fault that was not survived, whether it came to tell of it or not."""


def _has_fault(report: pytest.TestReport) -> bool:
    return any(name == "fault" for name, _ in report.user_properties)


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
    told = {report.nodeid for report in terminalreporter.stats.get("failed", ()) if _has_fault(report)}
    rows += [
        (report.nodeid, f"failed before its fault could be told: {report.when}", "failed")
        for report in (*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ()))
        if report.nodeid not in told and any(name in report.nodeid for name in _FAULT_FILES)
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
