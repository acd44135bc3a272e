"""The order in which NCCL's rings pass GPUs: between hosts, or as it is given."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator

from cosim.errors import AlgorithmError
from cosim.pattern.costs import Costs
from cosim.pattern.ring import Rings
from cosim.pattern.template import I32

Orders = tuple[tuple[int, ...], ...]


def _checked(rings: Orders | Literal["by_links"]) -> Orders | Literal["by_links"]:
    for order in rings if rings != "by_links" else ():
        if sorted(order) != list(range(max(len(rings[0]), 2))):
            raise ValueError(
                f"{list(order)} should have each rank from 0 to {max(len(rings[0]), 2) - 1} once"
            )
    return rings


GivenRings = Annotated[Orders | Literal["by_links"], AfterValidator(_checked)]


def given_rings(orders: Orders, num_ranks: int, costs: Costs, *, reverse: bool = False) -> Rings:
    """Rings that pass ranks in these orders, all at once.

    Raises
    ------
    AlgorithmError
        They are of another number of ranks.
    """
    if len(orders[0]) != num_ranks:
        raise AlgorithmError(
            f"nccl: rings are of {len(orders[0])} ranks, and this group has {num_ranks}",
            hint="rings: by_links finds such as each group's links allow",
        )
    order = np.array(orders, np.int32)
    return Rings(num_ranks, len(order), costs, reverse=reverse, order=order, name="nccl ring")


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
