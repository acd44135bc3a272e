"""The order in which NCCL's rings between hosts pass GPUs."""

from __future__ import annotations

import numpy as np

from cosim.pattern.template import I32


def ring_orders(hosts: int, local: int, channels: int, *, alternate: bool, mesh: bool = False) -> I32:
    """int32[channels, hosts * local]: rings host by host, each entering a host by another of its NICs.

    Where a NIC has two GPUs or more a ring enters by one of them and leaves by another, all hosts alike, and
    stays on its rail (0 7 6 5 4 3 2 1 8 15 14 ...: what NCCL's search, ``search.cc``, finds first). Where a
    GPU has a NIC of its own, ``alternate`` passes every second host the other way round, so that a ring
    leaves by the NIC by which it enters the next host (``connect.cc``, "Alternate rings to avoid crossing
    rails": 0 7 6 5 4 3 2 1 9 10 11 12 13 14 15 8). Of an odd number of hosts the last and the first are
    alike, and each ring crosses there, as NCCL's do. Where NICs are on one switch the order is of no account,
    and hosts that are alike fold one by one, not in pairs. Not modelled: that NCCL may have all hosts alike
    and leave by another GPU's NIC (PXN) where NVLinks have a channel's rate to spare; rails are kept so, too.
    """
    enter = np.arange(channels) * local // channels
    far = np.arange(local)
    # Where each two GPUs have a link of their own: 0, 1, -1, 2, -2 ... from where a ring enters. Such paths
    # from all of an even number of GPUs take each link once, each way.
    steps = np.where(far % 2, (far + 1) // 2, -(far // 2)) if mesh else -far
    inside = (enter[:, None] + steps[None, :]) % local
    turned = alternate and local < 2 * channels
    ways = np.stack([inside, inside[:, ::-1] if turned else inside], axis=1)
    host = np.arange(hosts)
    ranks = host[None, :, None] * local + ways[:, host % 2]
    return np.ascontiguousarray(ranks.reshape(channels, hosts * local), np.int32)
