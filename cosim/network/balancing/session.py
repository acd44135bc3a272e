"""What a network of a run has for its balancer: the arrays, who is bound to what, and the asking."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import Self

import numpy as np

from cosim.kernel import kernel
from cosim.network.balancing.ask import MAX_STATE, Balance, ask_in_python, batch_of, wrong_answer
from cosim.network.balancing.candidates import Candidates
from cosim.network.balancing.contract import Balancer
from cosim.network.chance import salts
from cosim.network.flows import I32, I64
from cosim.network.plugged import address_of_kernel, state_width
from cosim.network.simulator import BalancingUse
from cosim.registry import name_of
from cosim.topology.graph import Topology
from cosim.units import NEVER

_NONE: int = kernel.NONE


class Balancing:
    """The balancing of one network; ``columns`` is what its loop has of it."""

    def __init__(self, balancer: Balancer, topology: Topology, seed: int) -> None:
        self.balancer = balancer
        self._topology = topology
        self._seed = seed
        self._bound = 0
        self._ends = np.zeros((0, 3), np.int64)
        self._parts_used = 0
        links = topology.num_links
        self.columns = Balance(
            crowd=np.zeros(links, np.int64),
            dead=np.zeros(links, np.int32),
            spot=np.full(links, _NONE, np.int32),
            parameters=np.array(balancer.parameters(), np.float64),
        )
        pause = balancer.least_pause()
        counts = self.columns.counts[0]
        counts["on"] = 1
        counts["splits"] = balancer.gives == "parts"
        counts["looks"] = balancer.looks
        counts["one_by_one"] = balancer.one_by_one
        counts["num_states"] = state_width(balancer)
        counts["least_pause"] = NEVER if pause is None else pause
        counts["kernel"] = address_of_kernel(type(balancer))
        counts["most_paths"] = 1

    @cached_property
    def candidates(self) -> Candidates:
        """The paths that pairs have to choose among."""
        return Candidates(self._topology, detours=self.balancer.detours)

    def bind(self, count: int, numbers: I32, job: int, src: I32, dst: I32, channel: I32) -> None:
        """Make room for ``count`` connections, of which some have just got the numbers in ``numbers``; find
        what the new ones may choose among.
        """
        old = self._bound
        if count == old:
            return
        # Rows of a connection that is there already, or comes several times, bring it once.
        number, row = np.unique(numbers, return_index=True)
        row = row[number >= old]
        src, dst, channel = src[row], dst[row], channel[row]
        self._ends = np.concatenate([self._ends, np.stack([np.full(len(src), job), src, dst], axis=1)])
        balance, candidates = self.columns, self.candidates
        pair = candidates.of(src, dst)
        balance.put(pairs=candidates.pairs, candidates=candidates.paths, links=candidates.links)
        self._bound = count
        balance.lengthen("routes", count)
        balance.lengthen("state", count * MAX_STATE)
        mine = balance.routes[old:count]
        mine["pair"], mine["job"] = pair, job
        mine["path"] = mine["part"] = mine["due"] = _NONE
        mine["salt"] = salts(self._seed, np.stack([np.full(len(src), job), src, dst, channel], axis=1))
        counts = balance.counts[0]
        if counts["splits"]:
            room = candidates.pairs["count"][pair]
            # Parts of all connections lie one after the other, as many as its pair has paths.
            mine["part"] = self._parts_used + np.cumsum(room) - room
            self._parts_used += int(room.sum())
            balance.lengthen("parts", self._parts_used)
        counts["most_paths"] = int(candidates.pairs["count"].max(initial=1))

    def avoid(self, dead: Iterable[int]) -> None:
        """These links, and no others, are known to be dead."""
        self.columns.dead[:] = 0
        self.columns.dead[list(dead)] = 1

    def num_paths(self, old: int) -> I64:
        """How many paths each connection from number ``old`` on has to choose among."""
        pair = self.columns.routes["pair"][old : self._bound]
        return np.asarray(self.candidates.pairs["count"][pair], np.int64)

    def chosen(self) -> tuple[I64, I64]:
        """What the batch's answers that were not taken yet name: connections, and of each a path's number."""
        counts = self.columns.counts[0]
        rows, seen = (of[int(counts["taken"]) :] for of in batch_of(self.columns))
        conn = rows["conn"].copy()
        if not counts["splits"]:
            return conn, rows["path"].astype(np.int64)
        row, path = np.nonzero(seen["part"] > 0.0)
        return conn[row], path

    def paths(self, conn: I64, path: I64) -> tuple[I64, I64, I32]:
        """Where links of connections' paths begin, how many there are, and the links."""
        first = self.candidates.pairs["first"][self.columns.routes["pair"][conn]]
        found = self.candidates.paths[first + path]
        return found["begin"], found["end"] - found["begin"], self.candidates.links

    def answer(self, what: int) -> None:
        """See to what a loop stopped for: ask the balancer, or refuse what it answered.

        Raises
        ------
        NetworkError
            The balancer failed, or its answer can't be followed.
        """
        if what == kernel.CHOOSE:
            ask_in_python(self.balancer, self.columns, self._describe)
        else:
            wrong = int(self.columns.counts["wrong"][0])
            raise wrong_answer(self.balancer, self.columns, wrong, self._describe)

    def _describe(self, c: int) -> str:
        job, src, dst = self._ends[c].tolist()
        names = self._topology.node_names
        return f"the connection of job {job} from {names[src]} to {names[dst]}"

    def copied(self) -> Self:
        """The same, with copies of what a loop writes."""
        other, mine, counts = copy(self), self.columns, self.columns.counts[0]
        rows = int(counts["num_rows"])
        used = {"routes": self._bound, "state": self._bound * MAX_STATE, "parts": self._parts_used}
        used |= {"rows": rows, "seen": rows * int(counts["most_paths"])}
        used["choosing"] = int(counts["num_choosing"])
        # The loop writes who uses a path; where it leads stays the same.
        written = ("candidates", "crowd", "dead", "spot")
        other.columns = mine.copy(used, **{name: getattr(mine, name).copy() for name in written})
        return other

    def used(self) -> BalancingUse:
        """What the balancer did so far, for the page."""
        counts, pairs = self.columns.counts[0], self.candidates.pairs
        users = np.concatenate([[0], np.cumsum(self.columns.candidates["users"] > 0)])
        taken = users[pairs["first"] + pairs["count"]] - users[pairs["first"]]
        busy = taken > 0
        return BalancingUse(
            name_of("cosim.balancers", type(self.balancer)) or type(self.balancer).__name__,
            int(counts["num_choices"]),
            int(counts["num_changes"]),
            float(pairs["count"][busy].mean()) if busy.any() else 0.0,
            float(taken[busy].mean()) if busy.any() else 0.0,
        )
