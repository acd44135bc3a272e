"""What a network of a run has for its balancer: the arrays, who is bound to what, and the asking."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from functools import cache, cached_property
from typing import Any, Self

import numpy as np

from cosim.network.addresses import Addresses
from cosim.network.balancing.ask import ask_in_python, kernel_signature, state_width, wrong_answer
from cosim.network.balancing.candidates import Candidates
from cosim.network.balancing.choosing import CHOOSE, NEED_CHOICES, WRONG_CHOICE
from cosim.network.balancing.contract import Balancer
from cosim.network.balancing.state import CHOICE, COUNTS, MAX_STATE, PAIR, PATH, ROUTE, SEEN, Balance
from cosim.network.chance import salts
from cosim.network.flows import I32, I64
from cosim.network.growing import GrowingArrays
from cosim.network.simulator import BalancingUse
from cosim.registry import name_of
from cosim.topology.graph import Topology
from cosim.units import NEVER

_NONE = -1
_LOOP_WRITES = ("counts", "dead", "routes", "parts", "state", "rows", "seen", "choosing", "crowd", "spot")


def _arrays(num_links: int) -> dict[str, Any]:
    """What a balancer begins with."""
    return {
        "counts": np.zeros(1, COUNTS),
        "routes": np.zeros(0, ROUTE),
        "pairs": np.zeros(0, PAIR),
        "paths": np.zeros(0, PATH),
        "links": np.zeros(0, np.int32),
        "parts": np.zeros(0, np.float64),
        "state": np.zeros((0, MAX_STATE), np.float64),
        "rows": np.zeros(0, CHOICE),
        "seen": np.zeros((0, 1), SEEN),
        "choosing": np.zeros(0, np.int32),
        "crowd": np.zeros(num_links, np.int64),
        "dead": np.zeros(num_links, np.int32),
        "spot": np.full(num_links, _NONE, np.int32),
        "parameters": np.zeros(0, np.float64),
    }


@cache
def _nobodys() -> Balance:
    """Of a network without a balancer: no loop writes there."""
    return Balance(**_arrays(0))


class Balancing:
    """Of one network; without a balancer, or with one that does not choose, nothing."""

    def __init__(
        self,
        balancer: Balancer | None,
        topology: Topology,
        seed: int,
        addresses: Addresses,
        *,
        in_python: bool = False,
    ) -> None:
        self._addresses = addresses
        self.balancer = balancer if balancer is not None and balancer.chooses else None
        self._topology = topology
        self._seed = seed
        self._bound = 0
        self._ends = np.zeros((0, 3), np.int64)
        self._parts_used = 0
        self._view: Balance | None = None
        self._arrays = GrowingArrays()
        if self.balancer is not None:
            self._arrays.update(_arrays(topology.num_links))
            self._set_up(self.balancer, in_python=in_python)

    def _set_up(self, balancer: Balancer, *, in_python: bool) -> None:
        counts = self._arrays["counts"][0]
        counts["on"] = 1
        counts["splits"] = balancer.gives == "parts"
        counts["looks"] = balancer.looks
        counts["one_by_one"] = balancer.one_by_one
        counts["num_states"] = state_width(balancer)
        pause = balancer.least_pause()
        counts["least_pause"] = NEVER if pause is None else pause
        self._arrays["parameters"] = np.array(balancer.parameters(), np.float64)
        kernel = None if in_python else type(balancer).kernel
        if kernel is not None:
            self._addresses.tell(counts, "kernel", kernel, kernel_signature())

    def call(self, choose: Callable[..., int], end: Callable[..., int], signature: Any) -> None:
        """Have the network's loop find its functions that have a batch choose, and that end a message."""
        counts = self._arrays["counts"][0]
        self._addresses.tell(counts, "choose", choose, signature)
        self._addresses.tell(counts, "end", end, signature)

    @cached_property
    def candidates(self) -> Candidates:
        """The paths that pairs have to choose among."""
        detours = self.balancer is not None and self.balancer.detours
        return Candidates(self._topology, detours=detours)

    def view(self) -> Balance:
        """The arrays as they are now; without a balancer those of every network that has none."""
        if self.balancer is None:
            return _nobodys()
        self._view = Balance.of(self._view, **self._arrays)
        return self._view

    def bind(self, count: int, numbers: I32, job: int, src: I32, dst: I32, channel: I32) -> None:
        """Make room for ``count`` connections, of which some have just got the numbers in ``numbers``; find
        what the new ones may choose among.
        """
        old = self._bound
        if self.balancer is None or count == old:
            return
        # Rows of a connection that is there already, or comes several times, bring it once.
        number, row = np.unique(numbers, return_index=True)
        row = row[number >= old]
        src, dst, channel = src[row], dst[row], channel[row]
        self._ends = np.concatenate([self._ends, np.stack([np.full(len(src), job), src, dst], axis=1)])
        pair = self.candidates.of(src, dst)
        for name in ("pairs", "paths", "links"):
            self._arrays[name] = getattr(self.candidates, name)
        self._bound = count
        for name in ("routes", "state", "choosing"):
            self._arrays.reserve(name, count)
        mine = self._arrays["routes"][old:count]
        mine["pair"], mine["job"] = pair, job
        mine["path"] = mine["part"] = mine["due"] = _NONE
        mine["salt"] = salts(self._seed, np.stack([np.full(len(src), job), src, dst, channel], axis=1))
        if self._arrays["counts"]["splits"][0]:
            room = self.candidates.pairs["count"][pair]
            # Parts of all connections lie one after the other, as many as its pair has paths.
            mine["part"] = self._parts_used + np.cumsum(room) - room
            self._parts_used += int(room.sum())
            self._arrays.reserve("parts", self._parts_used)
        widest = int(self.candidates.pairs["count"].max(initial=1))
        if widest > self._arrays["seen"].shape[1]:
            self._make_rows(len(self._arrays["rows"]), widest)

    def _make_rows(self, count: int, widest: int) -> None:
        self._arrays["rows"] = np.zeros(count, CHOICE)
        self._arrays["seen"] = np.zeros((count, widest), SEEN)

    def avoid(self, dead: Iterable[int]) -> None:
        """These links, and no others, are known to be dead."""
        self._arrays["dead"][:] = 0
        self._arrays["dead"][list(dead)] = 1

    def _make_room(self) -> None:
        """Rows for all that choose now; nobody was asked yet."""
        need = int(self._arrays["counts"]["num_rows"][0])
        self._make_rows(max(need, 2 * len(self._arrays["rows"]), 16), self._arrays["seen"].shape[1])

    def num_paths(self, old: int) -> I64:
        """How many paths each connection from number ``old`` on has to choose among."""
        pair = self._arrays["routes"]["pair"][old : self._bound]
        return np.asarray(self.candidates.pairs["count"][pair], np.int64)

    def chosen(self) -> tuple[I64, I64]:
        """What the batch's answers that were not taken yet name: connections, and of each a path's number."""
        counts = self._arrays["counts"][0]
        left = slice(int(counts["taken"]), int(counts["num_rows"]))
        conn = self._arrays["rows"]["conn"][left]
        if not counts["splits"]:
            return conn, self._arrays["rows"]["path"][left].astype(np.int64)
        row, path = np.nonzero(self._arrays["seen"]["part"][left] > 0.0)
        return conn[row], path

    def paths(self, conn: I64, path: I64) -> tuple[I64, I64, I32]:
        """Where links of connections' paths begin, how many there are, and the links."""
        first = self.candidates.pairs["first"][self._arrays["routes"]["pair"][conn]]
        found = self.candidates.paths[first + path]
        return found["begin"], found["end"] - found["begin"], self.candidates.links

    def see_to(self, what: int) -> bool:
        """See to what a loop stopped for, if it is the balancer's; whether it was.

        Raises
        ------
        NetworkError
            The balancer's answer can't be followed.
        """
        if what == NEED_CHOICES:
            self._make_room()
        elif what == CHOOSE:
            assert self.balancer is not None
            ask_in_python(self.balancer, self.view(), self._describe)
        elif what == WRONG_CHOICE:
            self._refuse()
        return what in (NEED_CHOICES, CHOOSE, WRONG_CHOICE)

    def _describe(self, c: int) -> str:
        job, src, dst = self._ends[c].tolist()
        names = self._topology.node_names
        return f"the connection of job {job} from {names[src]} to {names[dst]}"

    def _refuse(self) -> None:
        assert self.balancer is not None
        wrong = int(self._arrays["counts"]["wrong"][0])
        raise wrong_answer(self.balancer, self.view(), wrong, self._describe)

    def copied(self) -> Self:
        """The same, with copies of what a loop writes."""
        if self.balancer is None:
            return self
        other = copy(self)
        other._arrays = GrowingArrays(
            {
                # Of paths the loop writes who uses them; where they lead is the same.
                name: array.copy() if name in (*_LOOP_WRITES, "paths") else array
                for name, array in self._arrays.items()
            }
        )
        return other

    def used(self) -> BalancingUse | None:
        """What the balancer did so far, for the page; None without one."""
        if self.balancer is None:
            return None
        counts, pairs = self._arrays["counts"][0], self.candidates.pairs
        users = np.concatenate([[0], np.cumsum(self._arrays["paths"]["users"] > 0)])
        taken = users[pairs["first"] + pairs["count"]] - users[pairs["first"]]
        busy = taken > 0
        return BalancingUse(
            name_of("cosim.balancers", type(self.balancer)) or type(self.balancer).__name__,
            int(counts["num_choices"]),
            int(counts["num_changes"]),
            float(pairs["count"][busy].mean()) if busy.any() else 0.0,
            float(taken[busy].mean()) if busy.any() else 0.0,
        )
