"""The rings that NCCL and RCCL find inside a host whose GPUs have links to some of the others, and no switch.

As many rings at once as links allow, each link in one of them, each ring both ways: NCCL's search
(``search.cc``) and the orders that RCCL has of known hosts (``rome_models.cc``) aim at the same. Where no
ring goes over links alone (two islands of four GPUs) they leave them as seldom as can be, each by other GPUs.

Not modelled: such rings between several hosts (RCCL has orders for each number of NICs), rings that share a
link at a part of its rate, orders that spare NICs or CPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from cosim.pattern.group_links import GroupLinks

Order = tuple[int, ...]
_MOST_RANKS = 16
"""A host has no more GPUs without a switch; larger groups are several hosts'."""
_BUDGET = 20_000
"""Steps of a search, as NCCL's ``NCCL_SEARCH_GLOBAL_TIMEOUT`` counts them: then the best so far does."""


def is_mesh(links: GroupLinks) -> bool:
    """Each two of the group have a link, and all of one rate."""
    n = links.num_ranks
    return len(links.direct) == n * (n - 1) and len({bps for _, _, bps, _ in links.direct}) == 1


def rings_over(links: GroupLinks) -> tuple[Order, ...]:
    """Orders of the group's ranks, by position; none where a group's order is as good as any.

    A link of twice the least rate is two links.
    """
    n = links.num_ranks
    rate = {(src, dst): bps for src, dst, bps, _ in links.direct}
    both = {pair: min(bps, rate[pair[::-1]]) for pair, bps in rate.items() if pair[::-1] in rate}
    if not both or not 2 < n <= _MOST_RANKS:
        return ()
    unit = min(both.values())
    free = {pair: int(bps / unit * (1 + 1e-9)) for pair, bps in both.items()}
    for leaving in range(n):
        search = _RingSearch(n, dict(free), leaving)
        search.most(())
        if search.best:
            return tuple(order for ring in search.best for order in (ring, (ring[0], *ring[:0:-1])))
    return ()


class _RingSearch:
    """For rings that go ``leaving`` steps without a link: over ``free`` links, by pair of ranks."""

    def __init__(self, num_ranks: int, free: dict[tuple[int, int], int], leaving: int) -> None:
        self.num_ranks, self.free, self.leaving = num_ranks, free, leaving
        out = [sum(free.get((a, b), 0) for b in range(num_ranks)) for a in range(num_ranks)]
        self.bound = num_ranks if leaving else min(out) // 2
        self.best: tuple[Order, ...] = ()
        self.steps = 0
        self.left: frozenset[int] = frozenset()
        """Ranks from which a chosen ring goes without a link: others' way over PCI is still free."""

    def most(self, chosen: tuple[Order, ...]) -> None:
        """As many rings as there can be beside those chosen."""
        if len(chosen) > len(self.best):
            self.best = chosen
        for ring in self._rings(self.leaving, (0,)):
            pairs = list(zip(ring, [*ring[1:], ring[0]], strict=True))
            linked, before = [pair for pair in pairs if self.free.get(pair, 0)], self.left
            self.left |= {rank for pair in pairs if pair not in linked for rank in pair}
            for one, two in linked:
                self.free[one, two] -= 1
                self.free[two, one] -= 1
            self.most((*chosen, ring))
            for one, two in linked:
                self.free[one, two] += 1
                self.free[two, one] += 1
            self.left = before
            if len(self.best) == self.bound or self.steps > _BUDGET:
                return

    def _rings(self, leaving: int, path: Order) -> Iterator[Order]:
        """From ``path`` on, along the freest links first."""
        self.steps += 1
        if self.steps > _BUDGET:
            return
        there = [rank for rank in range(self.num_ranks) if rank not in path]
        for rank in sorted(there, key=lambda rank: -self.free.get((path[-1], rank), 0)) or path[:1]:
            linked = self.free.get((path[-1], rank), 0) > 0
            if not linked and (not leaving or rank in self.left or path[-1] in self.left):
                continue
            if there:
                yield from self._rings(leaving - (not linked), (*path, rank))
            else:
                yield path
