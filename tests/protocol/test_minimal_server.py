"""The protocol README's example of a server: it passes the conformance kit, and carries a run."""

import ast
import sys
from pathlib import Path

import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import loads
from cosim.protocol.v1 import SERVICE
from cosim.testing import check_server
from tests.cli.processes import PATIENCE_S
from tests.protocol import minimal_server, serving
from tests.protocol.small_run import SCENARIO

COMMAND = [sys.executable, "-m", "tests.protocol.minimal_server"]


def test_it_passes_and_claims_no_more_than_it_must() -> None:
    report = check_server(COMMAND, deadline_s=PATIENCE_S)
    assert report.passed, str(report)
    assert {*report.skipped} == {
        "cancel", "budget", "peek", "dependents", "start_dependents", "past_dependents", "given_later",
        "link_events", "link_rates", "detours", "live_changes", "live_control", "queues", "rates",
        "socket",
    }  # fmt: skip


def test_it_depends_on_the_generated_messages_alone() -> None:
    files = [Path(str(module.__file__)) for module in (minimal_server, serving)]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    imported = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name.startswith(("cosim", "tests"))}
    assert ours == {"cosim.protocol.v1", "tests.protocol.serving"}
    assert serving.SERVICE == SERVICE


def test_a_run_over_it_is_one_over_links_that_serve_first_come_first_served() -> None:
    """``congestion_aware`` is the same in whole nanoseconds, so that a few are lost in each iteration."""
    server = {"network": {"command": COMMAND}}
    means = []
    for settings in (server, {}):
        done = run(loads(SCENARIO, {**settings, "release": "engine"}))
        means.append([job.iteration_mean_ps for job in done.summary.jobs])
    assert means[0] == pytest.approx(means[1], rel=1e-4)
