"""Format ``counters``: octets in and out of the ports of switches that hosts are on, sample by sample.

A CSV that ``cosim analyse`` reads: ``port`` is ``SWITCH:NEIGHBOUR``, with ``#2`` for a second link between
both. Rates are those of :mod:`cosim.results.link_shares`: a message's bytes flow evenly from its start to its
end but where the link was full, and pass all ports of the path at once. Headers aren't counted.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from cosim.engine.records import MessageRecords
from cosim.errors import InputError, SimulationError
from cosim.results.link_shares import F64, I64, link_shares
from cosim.results.link_users import links_of_pairs
from cosim.spec import TimePs
from cosim.topology.graph import Topology
from cosim.translation.contract import Progress
from cosim.translation.loss_report import LossReport
from cosim.translation.message_level import OpenLoop
from cosim.translation.source import Source
from cosim.units import PS_PER_NS, PS_PER_S, format_time

_MOST_ROWS = 5_000_000


class CountersFormat(OpenLoop):
    """Counters of ports of switches that hosts are on, as CSV, at the times of a run of ours"""

    goes: ClassVar[str] = "each sample has"

    every: TimePs = Field(10**9, ge=PS_PER_NS, description="between two samples")

    def write(self, source: Source, out: Path, report: LossReport, progress: Progress) -> None:
        """See :meth:`Format.write`."""
        messages, topology = self.timed(source), source.topology
        ports = list(_ports(topology))
        if not ports:
            raise InputError(
                f"{topology.name} has no switch that hosts are on, whose ports count",
                hint="take a topology with switches: switch, leaf_spine, fat_tree",
            )
        end = int(messages.end_ps.max(initial=0))
        samples = 2 + -(-end // self.every)
        if len(ports) * samples > _MOST_ROWS:
            raise InputError(
                f"{len(ports)} ports each {format_time(self.every)} give {len(ports) * samples:,} samples",
                hint=f"up to {_MOST_ROWS:,} are written: --to '{{kind: counters, every: A LONGER TIME}}'",
            )
        edges = np.arange(samples, dtype=np.int64) * self.every
        over, rates = _messages_of_links(source, messages), _rates(topology, end)
        with (out / "counters.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(("port", "time_ns", "in_bytes", "out_bytes"))
            times = [at / PS_PER_NS for at in edges.tolist()]
            for done, (name, into, outward) in enumerate(ports, 1):
                counts = (
                    _counted(messages, over[link], float(rates[link]), edges).tolist()
                    for link in (into, outward)
                )
                rows.writerows(zip([name] * len(times), times, *counts, strict=True))
                progress(done, len(ports), "ports")
        report.written("ports", len(ports), f"counters.csv, {len(edges):,} samples each")


def _ports(topology: Topology) -> Iterator[tuple[str, int, int]]:
    """Name, link in and link out of each port of a switch that an endpoint is on."""
    src, dst = topology.link_src.tolist(), topology.link_dst.tolist()
    hosts = topology.num_endpoints
    back: dict[tuple[int, int], list[int]] = {}
    for link in range(topology.num_links):
        back.setdefault((src[link], dst[link]), []).append(link)
    edge = {dst[link] for link in range(topology.num_links) if src[link] < hosts <= dst[link]}
    seen: Counter[tuple[int, int]] = Counter()
    for link in range(topology.num_links):
        pair = src[link], dst[link]
        number = seen[pair]
        seen[pair] += 1
        if pair[0] in edge and number < len(back.get(pair[::-1], ())):
            more = f"#{number + 1}" if number else ""
            name = f"{topology.node_names[pair[0]]}:{topology.node_names[pair[1]]}{more}"
            yield name, back[pair[::-1]][number], link


def _rates(topology: Topology, end_ps: int) -> F64:
    """float64[links]: the most that each can carry during the run, in bits per second."""
    rates = topology.link_rate_bps.astype(np.float64)
    for change in topology.changes.changes if topology.changes is not None else ():
        if change.time_ps > end_ps:
            break
        now = change.rate_bps
        rates[change.link] = max(rates[change.link], now) if change.time_ps > 0 else now
    return rates


def _messages_of_links(source: Source, messages: MessageRecords) -> list[I64]:
    """Numbers of the messages that each link carried.

    Raises
    ------
    SimulationError
        They can't be told: links carried something else than their paths say.
    """
    topology, links = source.topology, source.run.links
    pairs, which = np.unique(np.stack([messages.src, messages.dst]), axis=1, return_inverse=True)
    src, dst = (np.ascontiguousarray(column, np.int32) for column in pairs)
    of_pair = np.bincount(which.ravel(), messages.size_bytes, minlength=len(src))
    passed = links_of_pairs(topology, src, dst, of_pair.astype(np.int64), links.link_bytes)
    if passed is None:
        raise SimulationError(
            "which ports messages passed isn't known where a load balancer, channels or failed links "
            "choose other paths than the routing's own; translate without these"
        )
    order = np.argsort(which.ravel(), kind="stable")
    first = np.searchsorted(which.ravel()[order], np.arange(len(src) + 1))
    path, pair = passed
    found: list[list[I64]] = [[] for _ in range(topology.num_links)]
    for link, number in zip(path.tolist(), pair.tolist(), strict=True):
        found[link].append(order[first[number] : first[number + 1]])
    return [np.concatenate([np.zeros(0, np.int64), *one]) for one in found]


def _counted(messages: MessageRecords, which: I64, rate_bps: float, edges_ps: I64) -> I64:
    """Octets since the sample before, whole, so that all together are those of the messages."""
    start, end, size = (column[which] for column in (messages.start_ps, messages.end_ps, messages.size_bytes))
    rates = link_shares(start, end, size, np.zeros(len(which), np.int64), 1, rate_bps, edges_ps)[0]
    total = np.append(0.0, np.cumsum(rates * np.diff(edges_ps) / (8 * PS_PER_S)))
    # What is more than the link can carry waits for later samples, as in a queue.
    most = rate_bps / (8 * PS_PER_S) * edges_ps
    passed = most + np.minimum.accumulate(total - most)
    passed[-1] = total[-1]
    return np.asarray(np.diff(np.rint(passed).astype(np.int64), prepend=0), np.int64)
