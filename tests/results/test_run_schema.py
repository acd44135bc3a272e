"""What runs write is what the schema says: columns, types, shapes and units."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.results.run_schema import columns, message_columns, mistakes, run_schema, unit_of

PLAIN = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
network: fair_share
jobs:
  - {workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MB}, iterations: 2}
  - {workload: {kind: collective, collective: all_to_all, ranks: 4, size: 1MB}}
record: {messages: npz}
"""
RECORDED = """
topology: {kind: switch, endpoints: 3, rate: 100Gbps, latency: 1us}
network: {model: congestion, control: dctcp}
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 3, size: 1MB}}]
record: {queues: ["switch0 -> *"], rates: ["npu0 -> *"], every: 1us, messages: npz}
"""
FOLDED = """
topology: {kind: ring, endpoints: 4, rate: 100Gbps, latency: 1us}
network: fair_share
fold: always
jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 1MB}}]
"""


@pytest.mark.parametrize("scenario", [PLAIN, RECORDED, FOLDED], ids=["plain", "recorded", "folded"])
def test_a_run_is_as_the_schema_says(scenario: str, tmp_path: Path) -> None:
    cosim.run(scenario, out=tmp_path)
    stored = cosim.load_run(tmp_path)
    assert mistakes(stored.columns, columns()) == []
    assert ("job_rank_numbers" in stored.columns) == (scenario is FOLDED)
    assert ("queue_bytes" in stored.columns) == (scenario is RECORDED)
    if scenario is not FOLDED:
        with np.load(tmp_path / "messages.npz") as messages:
            assert mistakes(dict(messages), message_columns()) == []
    Draft202012Validator(run_schema()["summary.json"]).validate(
        json.loads((tmp_path / "summary.json").read_text())
    )


def test_what_is_otherwise_is_said(tmp_path: Path) -> None:
    cosim.run(PLAIN, out=tmp_path)
    found = dict(cosim.load_run(tmp_path).columns)
    del found["op_rank"]
    found |= {
        "op_op": found["op_op"].astype(np.int64),
        "op_end_ps": found["op_end_ps"][1:],
        "more": np.zeros(1),
    }
    found["link_bytes"] = found["link_bytes"][None]
    said = mistakes(found, columns())
    assert len(said) == 5
    for part in (
        "more is in no",
        "op_rank is miss",
        "op_op is int64",
        "op_end_ps has",
        "link_bytes is int64[1",
    ):
        assert any(part in one for one in said), said


def test_the_command_prints_it() -> None:
    printed = CliRunner().invoke(app, ["schema", "run"])
    assert json.loads(printed.stdout) == json.loads(json.dumps(run_schema()))
    assert "scenario|run" in CliRunner().invoke(app, ["schema", "--help"]).stdout
    assert CliRunner().invoke(app, ["schema", "rum"]).exit_code == 2


def test_units_are_those_that_names_end_with() -> None:
    assert [unit_of(name) for name in ("start_ps", "rate_bps", "size_bytes")] == ["ps", "bit/s", "bytes"]
    assert [unit_of(name) for name in ("tokens_per_gpu_s", "op", "ps")] == ["", "", ""]
    summary = run_schema()["summary.json"]
    assert summary["properties"]["end_ps"]["unit"] == "ps"
    assert summary["$defs"]["JobSummary"]["properties"]["iteration_ps"]["unit"] == "ps"
