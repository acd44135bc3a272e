"""A folding: a job of which one rank of each orbit is simulated, and what that says of the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cosim.engine.folding.links import FoldedPaths
from cosim.engine.folding.translations import Translations
from cosim.engine.records import FctHistogram, JobInfo, Records, TrafficRecord
from cosim.network.flows import I32, I64
from cosim.network.simulator import NetworkStatistics
from cosim.topology.graph import Topology
from cosim.workload.looked_up import once
from cosim.workload.program import Workload


@once
def _folded(whole: Workload) -> dict[tuple[tuple[str, int], ...], Workload]:  # noqa: ARG001 - whose they are
    """A workload's representatives by the steps that fold it."""
    return {}


@dataclass(frozen=True, eq=False)
class Folding:
    """``whole`` is the job; ``orbits`` int64[n, copies] are links that stand for each other.

    ``reasons`` says of each axis that is not folded why.
    """

    whole: JobInfo
    translations: Translations
    topology: Topology
    orbits: I64
    reasons: tuple[str, ...] = ()

    @property
    def copies(self) -> int:
        """Ranks that each representative stands for, itself among them."""
        return self.translations.copies

    @cached_property
    def job(self) -> JobInfo:
        """The job of the representatives."""
        whole, ranks = self.whole.workload, self.translations.representatives
        known, steps = _folded(whole), tuple(self.translations.steps.items())
        if steps not in known:
            program_of = np.ascontiguousarray(whole.program_of[ranks])
            known[steps] = whole.on_ranks(self.translations.quotient, program_of)
        endpoints = np.ascontiguousarray(self.whole.endpoints[ranks])
        return replace(self.whole, workload=known[steps], endpoints=endpoints, folding=self)

    @cached_property
    def folded_topology(self) -> Topology:
        """The topology with each path led over the links that stand for its own.

        These have the lowest numbers: what is simulated of many links then lies close together.
        """
        whole, order = self.topology, self._order
        return replace(
            whole,
            link_src=whole.link_src[order],
            link_dst=whole.link_dst[order],
            link_rate_bps=whole.link_rate_bps[order],
            link_latency_ps=whole.link_latency_ps[order],
            scale_up=None if whole.scale_up is None else whole.scale_up[order],
            link_number=order,
            routing=FoldedPaths(whole, self._stands_for),
        )

    @cached_property
    def _order(self) -> I32:
        """The whole's number of each link of the folded topology."""
        others = np.ones(self.topology.num_links, np.bool_)
        others[self.orbits[:, 0]] = False
        return np.concatenate([self.orbits[:, 0], np.flatnonzero(others)]).astype(np.int32)

    @cached_property
    def _stands_for(self) -> I32:
        """The folded topology's number of the link that stands for each of the whole's."""
        numbers = np.empty(self.topology.num_links, np.int32)
        numbers[self._order] = np.arange(len(numbers))
        numbers[self.orbits] = np.arange(len(self.orbits))[:, None]
        return numbers

    def __str__(self) -> str:
        axes = ", ".join(
            f"{axis} {size}" + (f" to {step}" if step > 1 else "")
            for axis, size in self.translations.mesh.axes.items()
            if (step := self.translations.steps.get(axis, size)) < size
        )
        ranks, whole = self.job.workload.world_size, self.whole.workload.world_size
        return f"{axes}: {ranks} of {whole} ranks are simulated, each standing for {self.copies}"

    # -- what was simulated, multiplied ----------------------------------------------------------------

    def unfold(self, records: Records) -> Records:
        """Counters, links and traffic of the whole; operations and times stay those of representatives."""
        return replace(
            records,
            topology=self.topology,
            fct=self._fct(records.fct),
            traffic=self._traffic(records.traffic),
            links=self._links(records.links),
            num_messages=records.num_messages * self.copies,
        )

    def _fct(self, fct: FctHistogram) -> FctHistogram:
        return replace(fct, counts=fct.counts * self.copies, sum_ps=fct.sum_ps * self.copies)

    def _traffic(self, traffic: TrafficRecord) -> TrafficRecord:
        rank_of = np.full(self.topology.num_endpoints, -1, np.int64)
        rank_of[self.whole.endpoints] = np.arange(self.whole.workload.world_size)
        src, dst = (self.translations.images(rank_of[column]) for column in (traffic.src, traffic.dst))
        return TrafficRecord(
            traffic.bin_ps,
            self.whole.endpoints[src.reshape(-1)].astype(np.int32),
            self.whole.endpoints[dst.reshape(-1)].astype(np.int32),
            traffic.simulated,
        )

    def _links(self, links: NetworkStatistics) -> NetworkStatistics:
        return replace(
            links,
            link_bytes=links.link_bytes[self._stands_for],
            busy_ps=links.busy_ps[:, self._stands_for],
            flows_started=links.flows_started * self.copies,
            flows_completed=links.flows_completed * self.copies,
            extra={name: values[self._stands_for] for name, values in links.extra.items()},
        )
