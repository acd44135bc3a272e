"""The tables of a run: operations, collectives, messages, links, iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosim.engine.records import MessageRecords, OpRecords, Records
from cosim.errors import InputError
from cosim.network.simulator import NetworkStatistics
from cosim.results.collective_columns import collective_columns
from cosim.results.critical_path import KINDS, PathStep, critical_path
from cosim.results.optable import op_table
from cosim.results.summary import iteration_ends
from cosim.results.table import Array, Labels, Table, labels
from cosim.topology.graph import Topology
from cosim.workload.program import OpKind

I64 = NDArray[np.int64]

TEXTS: dict[str, dict[str, str]] = {
    "operations": {
        "job": "its name",
        "iteration": "from 0",
        "rank": "of the job, from 0",
        "operation": "number in the rank's program",
        "name": "of the operation, as the program has it",
        "kind": ", ".join(kind.value for kind in OpKind),
        "stream": "on which it ran",
        "start_ps": "of a collective: when the rank arrived",
        "end_ps": "of a collective: when the rank was done",
    },
    "collectives": {
        "job": "its name",
        "iteration": "from 0",
        "operation": "number in the program of its first rank",
        "name": "of the operation",
        "collective": "all_reduce ...",
        "algorithm": "what carried it",
        "group_size": "ranks",
        "size_bytes": "as the operation gives it",
        "messages": "that carried it",
        "start_ps": "first arrival",
        "ready_ps": "last arrival",
        "end_ps": "when its last rank was done",
    },
    "messages": {
        "job": "its name",
        "iteration": "from 0",
        "operation": "number in the program of its first rank",
        "src": "endpoint",
        "dst": "endpoint",
        "size_bytes": "payload",
        "start_ps": "when it could go",
        "end_ps": "when its last byte was at the receiver",
    },
    "links": {
        "name": "src -> dst",
        "src": "node",
        "dst": "node",
        "rate_bps": "bits per second",
        "latency_ps": "of its far end",
        "sent_bytes": "over the run",
        "busy_ps": "a fluid network counts the fraction of the rate in use",
        "utilisation": "busy over the whole run",
    },
    "iterations": {
        "job": "its name",
        "iteration": "from 0",
        "start_ps": "when the iteration before ended; of the first, the job's start",
        "end_ps": "when the last rank ended it",
        "duration_ps": "end less start",
    },
    "critical_path": {
        "kind": ", ".join(KINDS),
        "rank": "of the job, whose operation it is",
        "operation": "number in the rank's program",
        "name": "of the operation",
        "what": "the same for operations alike: a phase, or a collective and its size",
        "src": "endpoint that sent the message, -1 where the step is none",
        "dst": "endpoint that received it; src itself: what it did between two messages",
        "start_ps": "the end of the step before",
        "end_ps": "the start of the step after",
    },
}
"""What each column is."""


def operations_table(jobs: Sequence[str], ops: OpRecords, more: Mapping[str, Array | Labels]) -> Table:
    """In order of their ends; ``more`` are further columns, which replace those of the same name."""
    columns: dict[str, Array | Labels] = {
        "job": Labels(ops.job, tuple(jobs)),
        "iteration": ops.iteration,
        "rank": ops.rank,
        "operation": ops.op,
        **more,
    }
    return _table("operations", {**columns, "start_ps": ops.start_ps, "end_ps": ops.end_ps})


def messages_table(jobs: Sequence[str], messages: MessageRecords | None) -> Table:
    """In order of their ends.

    Raises
    ------
    InputError
        The run has none.
    """
    if messages is None:
        raise InputError(
            "the run has no messages",
            hint="keep them: cosim.run(..., messages=True), or with --out, --set record.messages=true",
        )
    columns = {name: getattr(messages, name) for name in ("src", "dst", "size_bytes", "start_ps", "end_ps")}
    job = Labels(messages.job, tuple(jobs))
    return _table(
        "messages", {"job": job, "iteration": messages.iteration, "operation": messages.op, **columns}
    )


def links_table(
    nodes: Sequence[str], src: Array, dst: Array, numbers: Mapping[str, Array], end_ps: int
) -> Table:
    """A row for each link; ``numbers`` are the columns from ``rate_bps`` on."""
    columns: dict[str, Array | Labels] = {
        "name": np.array([f"{nodes[a]} -> {nodes[b]}" for a, b in zip(src, dst, strict=True)], np.str_),
        "src": Labels(src, tuple(nodes)),
        "dst": Labels(dst, tuple(nodes)),
        **numbers,
        "utilisation": numbers["busy_ps"] / max(end_ps, 1),
    }
    return _table("links", columns)


def iterations_table(jobs: Sequence[str], start_ps: Sequence[int], end_ps: Sequence[I64]) -> Table:
    """From each job's start, and the ends [iterations, ranks] of each of its ranks."""
    ends = [iteration_ends(each) for each in end_ps]
    starts = [
        np.concatenate([[start], end[:-1]])[: len(end)] for start, end in zip(start_ps, ends, strict=True)
    ]
    counts = [len(end) for end in ends]
    start, end = (np.concatenate([np.zeros(0, np.int64), *each]).astype(np.int64) for each in (starts, ends))
    return _table(
        "iterations",
        {
            "job": Labels(np.repeat(np.arange(len(counts)), counts), tuple(jobs)),
            "iteration": np.concatenate([np.zeros(0, np.int64), *map(np.arange, counts)]).astype(np.int64),
            "start_ps": start,
            "end_ps": end,
            "duration_ps": end - start,
        },
    )


def collectives_table(columns: Mapping[str, Array | Labels]) -> Table:
    """In order of their ends; ``columns`` in any order."""
    return _table("collectives", {name: columns[name] for name in TEXTS["collectives"]})


def _table(name: str, columns: Mapping[str, Array | Labels]) -> Table:
    return Table(name, columns, TEXTS[name])


def path_table(steps: Sequence[PathStep], rank_numbers: I64 | None = None) -> Table:
    """In order of time; ``rank_numbers`` is what each rank is called, where that is not its number."""
    named = dict(zip(PathStep._fields, zip(*steps, strict=True), strict=False))
    numbers = {
        name: np.array(named.get(name, ()), np.int64)
        for name in ("rank", "op", "src", "dst", "start_ps", "end_ps")
    }
    if rank_numbers is not None:
        numbers["rank"] = np.asarray(rank_numbers, np.int64)[numbers["rank"]]
    texts = {name: labels(named.get(name, ())) for name in ("kind", "name", "what")}
    columns: dict[str, Array | Labels] = {**numbers, **texts, "operation": numbers["op"]}
    return _table("critical_path", {name: columns[name] for name in TEXTS["critical_path"]})


class RunTables:
    """Tables of a run that is in memory."""

    records: Records

    @cached_property
    def operations(self) -> Table:
        """Every operation that ended, of every simulated rank."""
        records = self.records
        table, ops = op_table(records), records.ops
        rows = table.rows(ops)
        named = (job.workload.table for job in records.jobs)
        names = labels([one.names[at] for one in named for at in one.name.tolist()])
        folded = any(job.folding is not None for job in records.jobs)
        return operations_table(
            [job.name for job in records.jobs],
            ops,
            {
                **({"rank": _numbers(records)[table.ranks(ops)]} if folded else {}),
                "name": Labels(names.codes[rows], names.names),
                "kind": Labels(table.kind[rows], tuple(kind.value for kind in OpKind)),
                "stream": Labels(table.stream[rows], table.streams),
            },
        )

    @cached_property
    def collectives(self) -> Table:
        """Every collective of every group; of folded jobs, those of the simulated ranks."""
        found = collective_columns(self.records.collectives)
        columns: dict[str, Array | Labels] = {
            "job": Labels(found.job, tuple(job.name for job in self.records.jobs)),
            "operation": found.op,
        }
        rest = (name for name in TEXTS["collectives"] if name not in columns)
        columns |= {name: getattr(found, name) for name in rest}
        return collectives_table(columns)

    @cached_property
    def messages(self) -> Table:
        """Every message, where the run kept them.

        Raises
        ------
        InputError
            It didn't.
        """
        return messages_table([job.name for job in self.records.jobs], self.records.messages)

    @cached_property
    def links(self) -> Table:
        """Every link, with what the network counted there: queues, marks, drops ..., where it has them."""
        topology, statistics = self.records.topology, self.records.links
        return links_table(
            topology.node_names,
            topology.link_src,
            topology.link_dst,
            _link_numbers(topology, statistics),
            self.records.end_ps,
        )

    @cached_property
    def iterations(self) -> Table:
        """Every iteration that all ranks of its job ended."""
        jobs = self.records.jobs
        return iterations_table(
            [job.name for job in jobs], [job.start_ps for job in jobs], self.records.iteration_end_ps
        )

    @cached_property
    def queues(self) -> Table:
        """Queues, marks, drops and pauses of links over time, where the scenario asked for them.

        Raises
        ------
        InputError
            It didn't.
        """
        from cosim.results.series import queues_table

        topology = self.records.topology
        return queues_table(topology.node_names, topology.link_src, topology.link_dst, self.records.series)

    @cached_property
    def rates(self) -> Table:
        """Rates and windows of jobs and pairs of endpoints over time, where the scenario asked for them.

        Raises
        ------
        InputError
            It didn't.
        """
        from cosim.results.series import rates_table

        return rates_table(self.records.series)

    def critical_path(self, job: int = 0, iteration: int | None = None) -> Table:
        """What followed what in an iteration, without a gap: steps that add up to its time, first to last.

        Of the last iteration that ended, if none is named. Where the run keeps messages
        (``cosim.run(..., messages=True)``), collectives are steps by message.

        Raises
        ------
        InputError
            There is no such job or iteration.
        """
        path = critical_path(self.records, job, iteration)
        return path_table(path.steps, self.records.jobs[job].rank_numbers)


def _numbers(records: Records) -> I64:
    """What each rank of the run is called, jobs one after the other."""
    return np.concatenate([job.rank_numbers for job in records.jobs])


def _link_numbers(topology: Topology, statistics: NetworkStatistics) -> dict[str, Array]:
    counted: Mapping[str, Any] = statistics.extra
    return {
        "rate_bps": topology.link_rate_bps,
        "latency_ps": topology.link_latency_ps,
        "sent_bytes": statistics.link_bytes,
        "busy_ps": statistics.link_busy_ps,
        **{name: value for name, value in counted.items() if np.shape(value) == (topology.num_links,)},
    }
