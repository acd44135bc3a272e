"""The tables of a scenario's jobs. A row of ``operations`` has a cell for each field of an operation.

An empty cell is what the operation doesn't have: no group given as ranks, no peer. Ranks of a group are
numbers with blanks between; axes are a JSON list, for their names may hold anything.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["int", "float", "text"]

TABLES: dict[str, dict[str, Kind]] = {
    "jobs": {
        "job": "int", "name": "text", "workload": "text", "iterations": "int", "start_ps": "int",
        "weight": "float", "priority": "int", "rendezvous": "int",
    },
    "mesh": {"job": "int", "axis": "text", "size": "int"},
    "programs": {"job": "int", "program": "int", "name": "text"},
    "ranks": {"job": "int", "rank": "int", "program": "int", "endpoint": "int"},
    "operations": {
        "job": "int", "program": "int", "op": "int", "name": "text", "kind": "text", "stream": "text",
        "duration_ps": "int", "flops": "float", "bytes_moved": "float", "collective": "text", "axes": "text",
        "ranks": "text", "size_bytes": "int", "root": "int", "peer_rank": "text", "peer_axis": "text",
        "peer_offset": "int", "tag": "int", "channel": "int", "phase": "text",
        "access": "text", "ahead": "int",
    },
    "dependencies": {"job": "int", "program": "int", "op": "int", "dep": "int"},
}  # fmt: skip
"""Table -> column -> what its cells hold."""
