"""What a collective takes at least: each message alone, over the quickest links there are."""

from __future__ import annotations

import numpy as np

from cosim.experiment.search.quickest import INSIDE, OUTSIDE, Quickest
from cosim.kernel import kernel
from cosim.pattern.plan import Plan
from cosim.pattern.template import I32, I64, Template
from cosim.units import PS_PER_S

MOST_FLOWS = 2_000_000
"""Where there are more, only how much each endpoint sends is looked at."""


def least_time_ps(plan: Plan, domain: I64, quickest: Quickest) -> int:
    """From when all ranks are there until the first is done, at least.

    Parameters
    ----------
    plan
        Of the collective, on a group.
    domain
        Scale-up domain of each rank of the group.
    quickest
        What endpoints can send.
    """
    sent = np.zeros((plan.num_ranks, 2), np.int64)
    longest = 0
    for chunk in plan.chunks:
        together = 0
        for phase in chunk:
            phases = []
            for ranks in phase.groups:
                _add_bytes(phase.template, ranks, domain, sent)
                phases.append(_chain_ps(phase.template, domain[ranks], quickest))
            together += min(phases)
        longest = max(longest, together)
    leaving = sent[:, OUTSIDE] * (8 * PS_PER_S / quickest.rate_bps[OUTSIDE])
    all_of_it = sent.sum(axis=1) * (8 * PS_PER_S / quickest.rate_bps[INSIDE])
    return max(longest, int(np.maximum(leaving, all_of_it).min()))


def _add_bytes(template: Template, ranks: I32, domain: I64, sent: I64) -> None:
    """Add what each rank of a sub-group sends, to either side."""
    if template.num_participants != len(ranks):
        return
    between = template.src != template.dst
    repeat = np.repeat(template.block_repeat, np.diff(template.block_row))
    src, dst = ranks[template.src[between]], ranks[template.dst[between]]
    size = (template.bytes * repeat)[between]
    side = np.where(domain[src] == domain[dst], INSIDE, OUTSIDE)
    np.add.at(sent, (src, side), size)


def _chain_ps(template: Template, domain: I64, quickest: Quickest) -> int:
    """When the first rank is done, if messages never wait for one another's bytes."""
    if template.num_flows > MOST_FLOWS or template.num_participants != len(domain):
        return 0
    side = np.where(domain[template.src] == domain[template.dst], INSIDE, OUTSIDE)
    takes = quickest.least_ps(template.bytes, side)
    takes[template.src == template.dst] = 0
    start, end = np.zeros((2, template.num_flows), np.int64)
    kernel.end_flows(
        len(template.block_repeat), template.block_row, template.block_repeat, template.dep_ptr,
        template.dep_distance, template.dep_kind, np.ascontiguousarray(template.delay_ps), takes, start, end,
    )  # fmt: skip
    return int(end[template.exit_base :].min())
