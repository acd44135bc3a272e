"""Our Chakra files, read by upstream's own tool: its jsonizer, run as its users run it.

``CHAKRA_PYTHON`` names the interpreter that has upstream's ``chakra`` (github.com/mlcommons/chakra); without
it, the tests' own, if that has it. Skipped elsewhere. ``CHAKRA_PATH`` is its PYTHONPATH, for a copy that
isn't installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cosim
from cosim.formats.chakra.et_def_pb2 import Node, NodeType
from cosim.formats.chakra.file import read_trace
from cosim.synthesis.draw import Scale, synthesise
from cosim.synthesis.files import write_traces
from cosim.synthesis.learn import learn
from cosim.synthesis.sources import read_sources

PYTHON = os.environ.get("CHAKRA_PYTHON", sys.executable)
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.environ.get("CHAKRA_PATH", "")}
JSONIZER = "chakra.src.jsonizer.jsonizer"

SCENARIO = """
topology: {kind: ring, endpoints: 4, rate: 400Gbps, latency: 500ns}
network: fair_share
jobs:
  - workload:
      kind: operations
      mesh: {dp: 2, tp: 2}
      programs:
        - operations:
            - {name: "work, hard", kind: compute, duration: 3us}
            - {name: sum, kind: collective, collective: all_reduce, size: 9KiB, axes: [tp]}
            - {name: all, kind: collective, collective: reduce_scatter, size: 5GB, deps: [sum, "work, hard"]}
    iterations: 2
"""


def has_upstream() -> bool:
    found = subprocess.run(
        [PYTHON, "-c", f"import {JSONIZER}"], env=ENVIRONMENT, capture_output=True, check=False
    )
    return found.returncode == 0


def jsonized(path: Path) -> list[dict[str, Any]]:
    """What upstream's jsonizer makes of a trace: metadata, then nodes."""
    out = path.with_suffix(".json")
    command = [PYTHON, "-m", JSONIZER, "--input_filename", str(path), "--output_filename", str(out)]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
    decoder, text, found = json.JSONDecoder(), out.read_text(), []
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].lstrip()
    return found


def said(node: Node) -> dict[str, Any]:
    """A node as protobuf's JSON has it: defaults left out, 64-bit numbers as text."""
    attributes = []
    for attribute in node.attr:
        kind = str(attribute.WhichOneof("value"))
        value = getattr(attribute, kind)
        shown = str(value) if kind == "int64_val" else value
        name = kind.split("_")[0] + "Val"
        attributes.append({"name": attribute.name, name: shown})
    every: dict[str, Any] = {
        "id": str(node.id) if node.id else None,
        "name": node.name or None,
        "type": NodeType.Name(node.type),
        "dataDeps": [str(dep) for dep in node.data_deps] or None,
        "durationMicros": str(node.duration_micros) if node.duration_micros else None,
        "attr": attributes or None,
    }
    return {name: value for name, value in every.items() if value is not None}


def synthesised(folder: Path) -> None:
    """Traces that were learned from the scenario's, in ``folder``."""
    cosim.translate(cosim.loads(SCENARIO), "chakra", folder / "source")
    source = read_sources([folder / "source"], world_size=None, gpu=None, dependencies="all")
    write_traces(synthesise(learn(source, hide=2), scale=Scale(layers=2)), folder)


@pytest.mark.parametrize("to", ["chakra", "chakra-messages", "astra-sim", "synthesised"])
def test_upstream_s_jsonizer_reads_every_node_and_attribute(to: str, tmp_path: Path) -> None:
    if not has_upstream():
        pytest.skip("pip install github.com/mlcommons/chakra, or set CHAKRA_PYTHON")
    if to == "synthesised":
        synthesised(tmp_path)
    else:
        cosim.translate(cosim.loads(SCENARIO), to, tmp_path)
    for rank in range(4):
        metadata, *nodes = jsonized(tmp_path / f"trace.{rank}.et")
        assert metadata == {"version": "0.0.4"}
        _, ours = read_trace(tmp_path / f"trace.{rank}.et")
        assert nodes == [said(node) for node in ours]
        assert len(nodes) > 3
