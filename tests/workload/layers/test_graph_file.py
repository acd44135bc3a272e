"""PipeDream's graph.txt: what is read, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cosim.cli import app
from cosim.errors import WorkloadError
from cosim.workload.layers.graph_file import read_graph

_NODE = "{} -- forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}\n"
GOOD = (
    _NODE.format("node1 -- Input0", "0.000", "0.000", "0.0", "0.000")
    + _NODE.format("node3 -- LSTM(8, 8)", "3.000", "4.500", "[80.0; 8.0]", "4.000")
    + _NODE.format("node2 -- Linear(in=1, out=2)", "1.500", "2.000", "40.000", "440.000 -- stage_id=1")
    + "\tnode1 -- node2\n\tnode2 -- node3\n"
)


def write(folder: Path, text: str) -> Path:
    path = folder / "graph.txt"
    path.write_text(text)
    return path


def test_layers_come_in_the_order_in_which_they_run(tmp_path: Path) -> None:
    made = read_graph(write(tmp_path, GOOD))
    assert [one.name for one in made.layers] == ["node2 Linear(in=1, out=2)", "node3 LSTM(8, 8)"]
    assert made.compute_s.tolist() == [0.0035, 0.0075]
    assert made.activation_bytes.tolist() == [40, 88]
    assert made.parameter_bytes.tolist() == [440, 4]
    assert made.crossing_bytes.tolist() == [40, 0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("=4.500", "=-4.500", r"graph.txt:2: node3: backward_compute_time is '-4.500'"),
        ("=4.500", "=nan", r"graph.txt:2: node3: backward_compute_time is 'nan'"),
        ("[80.0; 8.0]", "[80.0; x]", r"graph.txt:2: node3: activation_size is '\[80.0; x\]'"),
        (", parameter_size=4.000", "", r"graph.txt:2: node3: parameter_size is missing"),
        ("node3 -- LSTM", "node1 -- LSTM", r"graph.txt:2: there is a node1 before it"),
        ("\tnode2 -- node3", "\tnode2 -- node4", r"graph.txt:5: there is no node4"),
        ("\tnode1 -- node2", "\tnode3 -- node2", r"graph.txt: layers that read each other: .*node"),
        ("\tnode1 -- node2", "\tnode1 node2", r"graph.txt:4: 'node1 node2' is no edge"),
        ("node2 -- Linear", "node2 = Linear", r"graph.txt:3: .* is no layer"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(WorkloadError, match=said):
        read_graph(write(tmp_path, GOOD.replace(old, new)))


def test_a_file_without_layers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="has no layer"):
        read_graph(write(tmp_path, ""))


def test_the_command_says_stages_and_times(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    said = CliRunner().invoke(app, ["partition", str(path), "--workers", "2", "--rate", "1Gbps"]).stdout
    assert "2 layers on 2 workers" in said
    assert "predicted: 5.5 ms a minibatch, 1 x data parallelism (5.5 ms)" in said
    assert "simulated: 5.50" in said
    wrong = CliRunner().invoke(app, ["partition", str(path), "--workers", "2", "--rate", "1"])
    assert "--rate" in str(wrong.exception)
