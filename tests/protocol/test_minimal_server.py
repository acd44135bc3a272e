"""The protocol README's example of a server: it passes the conformance kit, and carries a run."""

import ast
import sys
from pathlib import Path

import pytest

from cosim.experiment.run import run
from cosim.experiment.scenario import loads
from cosim.protocol.v1 import SERVICE
from cosim.testing import check_server
from tests.protocol import minimal_server
from tests.protocol.small_run import SCENARIO

FILE = Path(minimal_server.__file__)


def test_it_passes_and_claims_no_more_than_it_must() -> None:
    report = check_server([sys.executable, str(FILE)])
    assert report.passed, str(report)
    assert {*report.skipped} == {
        "cancel", "budget", "peek", "dependents", "start_dependents", "past_dependents", "given_later",
        "link_events", "queues", "rates",
    }  # fmt: skip


def test_it_depends_on_the_generated_messages_alone() -> None:
    nodes = ast.walk(ast.parse(FILE.read_text()))
    imported = [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
    assert [name for name in imported if name and name.startswith("cosim")] == ["cosim.protocol.v1"]
    assert minimal_server.SERVICE == SERVICE


def test_a_run_over_it_is_one_over_links_that_serve_first_come_first_served() -> None:
    """``congestion_aware`` is the same in whole nanoseconds, so that a few are lost in each iteration."""
    server = {"network": {"command": [sys.executable, str(FILE)]}}
    means = []
    for settings in (server, {}):
        done = run(loads(SCENARIO, {**settings, "release": "engine"}))
        means.append([job.iteration_mean_ps for job in done.summary.jobs])
    assert means[0] == pytest.approx(means[1], rel=1e-4)
