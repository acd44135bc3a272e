"""Statistics of networks that carry parts of one topology, put together in the whole's link numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cosim.network.flows import F64, I64
from cosim.network.simulator import NetworkStatistics


def merge(parts: Sequence[tuple[NetworkStatistics, I64]], num_links: int) -> NetworkStatistics:
    """Each part comes with the whole's number of each of its links.

    Bins are as wide as the widest of the parts. A column that a part doesn't have is 0 on its links.
    """
    bin_ps = max(found.bin_ps for found, _ in parts)
    busy = [_rebin(found.busy_ps, found.bin_ps, bin_ps) for found, _ in parts]
    link_bytes = np.zeros(num_links, np.int64)
    busy_ps = np.zeros((max(len(part) for part in busy), num_links), np.int64)
    extra: dict[str, F64] = {}
    for (found, links), part in zip(parts, busy, strict=True):
        link_bytes[links] = found.link_bytes
        busy_ps[: len(part), links] = part
        for name, values in found.extra.items():
            extra.setdefault(name, np.zeros(num_links, np.float64))[links] = values
    return NetworkStatistics(
        link_bytes,
        bin_ps,
        busy_ps,
        sum(found.flows_started for found, _ in parts),
        sum(found.flows_completed for found, _ in parts),
        sum(found.events for found, _ in parts),
        extra,
        next((found.balancing for found, _ in parts if found.balancing is not None), None),
    )


def _rebin(busy: I64, old_ps: int, new_ps: int) -> I64:
    """Wider bins; one that two of them share goes to both by its time in each."""
    if old_ps == new_ps:
        return busy
    total = np.zeros((len(busy) + 1, busy.shape[1]), np.int64)
    np.cumsum(busy, axis=0, out=total[1:])
    count = -(-len(busy) * old_ps // new_ps)
    sums = np.empty((count + 1, busy.shape[1]), np.int64)
    for k in range(count + 1):
        whole, rest = divmod(k * new_ps, old_ps)
        at = min(whole, len(busy))
        sums[k] = total[at]
        if rest and at < len(busy):
            sums[k] += np.rint(busy[at] * (rest / old_ps)).astype(np.int64)
    return np.asarray(np.diff(sums, axis=0), np.int64)
