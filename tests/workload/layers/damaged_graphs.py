"""Damaged graph.txt files, read and cut into stages: what :mod:`tests.lab.fuzz` tries."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cosim.workload.layers.graph_file import read_graph
from cosim.workload.layers.partition import Level, Partition, partition

_LAYER = (
    b"node%d -- Linear(%d) -- forward_compute_time=1.500, backward_compute_time=2.000, activation_size=4.0, "
    b"parameter_size=440.000\n"
)
CHAIN = b"".join(_LAYER % (k, k) for k in range(6)) + b"".join(
    b"\tnode%d -- node%d\n" % (k, k + 1) for k in range(5)
)
SEVERAL = (
    b"node1 -- Input0 -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=0.0, "
    b"parameter_size=0.0\n"
    b"node2 -- LSTM(8, 8) -- forward_compute_time=3.000, backward_compute_time=4.500, "
    b"activation_size=[80.0; 8.0], parameter_size=4.000 -- stage_id=1\n\tnode1 -- node2\n"
)


def cut(body: bytes) -> Partition:
    """Read a file of these bytes and cut it."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "graph.txt"
        path.write_bytes(body)
        return partition(read_graph(path), [Level(3, 10e9)])
