"""``fair_share``: flows share links like fluids, max-min fair, with weights and strict priorities.

Life of a flow: it is handed over at its start. Flows of one (job, source, destination, channel) go in
order, one at a time: the next begins to transfer when the one before has *drained*, that is when
its last byte has left the source. While it transfers it has a rate on its whole path at once (cut-through),
the max-min fair one (see ``sharing``); it completes when it has drained, plus the latencies of its
path. A message of zero bytes takes the latency only; a mark (source = destination) takes no time.

Rates change only when a flow begins or drains, once for each instant: when time leaves it; and only in
the components of links and flows that this touches. A drain comes at a whole picosecond, rounded up
(``drains.drain_time`` says how dust is told from volume). Where higher classes fill a link, lower ones
wait at rate zero.

At an instant, first what drains then, then what starts then. A drain depends on the past only, so it is
taken up to the limit of an advance; a start or a new rate only before it, because the caller may still
give starts there. Dependents are told at the drain, when the completion is certain.

Link statistics: busy time is the fraction of the rate in use; bytes count when a flow drains.
Not modelled: packets, queues, window or rate control and the time it takes to converge, loss; a path's
links give a flow its rate at the same instant.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosim.errors import NetworkError
from cosim.network.calendar import HEAP_N, Records, free, take_instant
from cosim.network.channels import CHANNEL, ChannelNumbers
from cosim.network.compiled import (
    BIN_PS,
    BOUND,
    CURSOR,
    DONE,
    EVENTS_N,
    GRANT,
    INSTANT,
    INSTANT_N,
    NEED_MORE,
    NEED_PENDING,
    PENDING_N,
    REPORT_N,
    SERIAL,
    STARTED_N,
    CompiledNetwork,
    Core,
    add_share,
    complete,
    release,
)
from cosim.network.drains import DRAIN, set_drain
from cosim.network.flows import I32, I64, FlowGroup
from cosim.network.jit import compiled
from cosim.network.order import sort_instant
from cosim.network.sharing import (
    BEGIN,
    DIRTY_N,
    DRAIN_N,
    FLOW,
    FLOW_FREE,
    LEVEL,
    LINK,
    MEMBER,
    MEMBER_FREE,
    MEMBER_LEFT,
    mark,
    share,
)
from cosim.network.simulator import NetworkSimulator, NetworkStatistics
from cosim.spec import Spec
from cosim.topology.graph import Topology
from cosim.units import NEVER

NEED_FLOWS, NEED_MEMBERS = 20, 21

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e3
_WEIGHT_UNIT = 10**9
_PS_PER_S_AND_BYTE = 8e12
_NONE = -1

CLASS = np.dtype([("weight", "i8"), ("priority", "i8")])
"""What a group's flows weigh, in billionths, and their class."""


class Fluid(NamedTuple):
    """The model's state; ``channel_of`` runs beside ``path_ptr``, ``classes`` beside the groups."""

    flows: Records
    members: Records
    links: Records
    drains: Records
    levels: Records
    channels: Records
    classes: Records
    channel_of: I32
    dirty: I32
    full: I32
    touched: I32
    found: I32
    reached: I32
    instant: I32
    spare: I32
    other: I32


@compiled
def run_fair(core: Core, fluid: Fluid, horizon: int) -> int:
    """Run every instant before the horizon and before any completion's reaction could matter."""
    meta = core.meta
    cal_meta, events, buckets, hashes, heap = core.calendar
    count, rows, successors, reps, groups, pages, cells, unused, work, out = core.store
    pending = core.pending
    path_ptr = core.path_ptr
    path_link = core.path_link
    link_bytes = core.link_bytes
    flows = fluid.flows
    members = fluid.members
    links = fluid.links
    drains = fluid.drains
    channels = fluid.channels
    dirty = fluid.dirty
    instant = fluid.instant
    while True:
        status = release(
            cal_meta,
            events,
            buckets,
            hashes,
            heap,
            count,
            rows,
            successors,
            reps,
            groups,
            pages,
            cells,
            unused,
            work,
            out,
        )
        if status != DONE:
            return status
        if meta[PENDING_N] == len(pending):
            return NEED_PENDING
        if meta[FLOW_FREE] == _NONE:
            return NEED_FLOWS
        now = meta[INSTANT]

        if meta[BEGIN] != 0:
            # The first flow of a channel begins to transfer.
            f = meta[BEGIN] - 1
            path = groups[flows[f].handle].path + flows[f].row
            hops = path_ptr[path + 1] - path_ptr[path]
            if hops > meta[MEMBER_LEFT]:
                return NEED_MEMBERS
            meta[BEGIN] = 0
            if flows[f].remaining == 0.0:
                meta[DRAIN_N] = set_drain(meta[DRAIN_N], drains, flows, f, now)
                continue
            flows[f].touched = now
            meta[MEMBER_LEFT] -= hops
            last = _NONE
            for k in range(path_ptr[path], path_ptr[path + 1]):
                link = path_link[k]
                m = meta[MEMBER_FREE]
                meta[MEMBER_FREE] = members[m].after
                first = links[link].first
                members[m].flow = f
                members[m].link = link
                members[m].before = _NONE
                members[m].after = first
                members[m].sibling = last
                if first != _NONE:
                    members[first].before = m
                links[link].first = m
                last = m
                mark(meta, links, dirty, link)
            flows[f].member = last
            continue

        if meta[CURSOR] < meta[INSTANT_N]:
            # A start.
            at = instant[meta[CURSOR]]
            meta[CURSOR] += 1
            meta[STARTED_N] += 1
            meta[EVENTS_N] += 1
            handle = events[at].handle
            rep = events[at].rep
            row = events[at].row
            free(cal_meta, events, at)
            if rows[row].src == rows[row].dst:
                complete(meta, pending, count, rows, reps, groups, work, handle, rep, row, now, now)
                continue
            f = meta[FLOW_FREE]
            meta[FLOW_FREE] = flows[f].next
            channel = fluid.channel_of[groups[handle].path + row]
            flows[f].handle = handle
            flows[f].rep = rep
            flows[f].row = row
            flows[f].origin = now
            flows[f].touched = now
            flows[f].weight = fluid.classes[handle].weight
            flows[f].priority = fluid.classes[handle].priority
            flows[f].channel = channel
            flows[f].remaining = rows[row].size
            flows[f].rate = 0.0
            flows[f].member = _NONE
            flows[f].place = _NONE
            flows[f].next = _NONE
            if channels[channel].head == _NONE:
                channels[channel].head = f
                meta[BEGIN] = f + 1
            else:
                flows[channels[channel].tail].next = f
            channels[channel].tail = f
            continue

        limit = min(horizon, meta[BOUND])
        next_start = heap[0].time if cal_meta[HEAP_N] > 0 else NEVER
        drain = drains[0].time if meta[DRAIN_N] > 0 else NEVER
        if meta[DIRTY_N] > 0 and min(next_start, drain) > now:
            # Time leaves the instant.
            if limit <= now:
                return DONE
            share(
                meta,
                core.link_busy,
                flows,
                members,
                links,
                drains,
                fluid.levels,
                dirty,
                fluid.full,
                fluid.touched,
                fluid.found,
                fluid.reached,
                now,
            )
            continue
        if meta[PENDING_N] >= meta[REPORT_N] and min(next_start, drain) > now:
            return DONE

        if meta[DRAIN_N] > 0 and drain <= next_start and drain <= limit:
            f = drains[0].flow
            meta[DRAIN_N] = set_drain(meta[DRAIN_N], drains, flows, f, NEVER)
            meta[INSTANT] = drain
            meta[EVENTS_N] += 1
            handle = flows[f].handle
            row = flows[f].row
            path = groups[handle].path + row
            arrival = drain
            for k in range(path_ptr[path], path_ptr[path + 1]):
                link_bytes[path_link[k]] += rows[row].size
                arrival += links[path_link[k]].latency
            m = flows[f].member
            while m != _NONE:
                link = members[m].link
                ahead = members[m].before
                behind = members[m].after
                if ahead != _NONE:
                    members[ahead].after = behind
                else:
                    links[link].first = behind
                if behind != _NONE:
                    members[behind].before = ahead
                members[m].after = meta[MEMBER_FREE]
                meta[MEMBER_FREE] = m
                meta[MEMBER_LEFT] += 1
                mark(meta, links, dirty, link)
                m = members[m].sibling
            channel = flows[f].channel
            channels[channel].head = flows[f].next
            meta[BEGIN] = flows[f].next + 1
            flows[f].next = meta[FLOW_FREE]
            meta[FLOW_FREE] = f
            origin = flows[f].origin
            complete(
                meta, pending, count, rows, reps, groups, work, handle, flows[f].rep, row, origin, arrival
            )
            continue

        if next_start >= limit:
            return DONE
        if len(instant) < len(events):
            return NEED_MORE
        # The next starts; those of one channel in their order.
        meta[INSTANT] = next_start
        meta[SERIAL] += 1
        at = take_instant(cal_meta, buckets, hashes, heap)
        found = 0
        clash = False
        while at != _NONE:
            instant[found] = at
            found += 1
            if rows[events[at].row].src != rows[events[at].row].dst:
                channel = fluid.channel_of[groups[events[at].handle].path + events[at].row]
                clash = clash or channels[channel].seen == meta[SERIAL]
                channels[channel].seen = meta[SERIAL]
            at = events[at].next
        meta[CURSOR] = 0
        meta[INSTANT_N] = found
        if clash:
            sort_instant(events, reps, groups, instant, fluid.spare, fluid.other, found)


@compiled
def _settle(meta: I64, busy: I64, links: Records, now: int) -> None:
    """Count the use of links up to ``now``, for statistics."""
    for link in range(len(links)):
        if links[link].used > 0.0:
            fraction = links[link].used / links[link].capacity
            add_share(meta, busy, link, links[link].since, now, fraction)


class FairShareNetwork(CompiledNetwork):
    """The model of the module's text."""

    name = "fair_share"

    def _open_model(self, topology: Topology, seed: int) -> None:
        del seed
        count = topology.num_links
        links = np.zeros(count, LINK)
        links["capacity"] = topology.link_rate_bps / _PS_PER_S_AND_BYTE
        links["latency"] = topology.link_latency_ps
        links["first"] = _NONE
        self._numbers = ChannelNumbers()
        self._fluid: dict[str, NDArray[Any]] = {
            "flows": np.zeros(0, FLOW),
            "members": np.zeros(0, MEMBER),
            "links": links,
            "drains": np.zeros(0, DRAIN),
            "levels": np.zeros(count, LEVEL),
            "channels": np.zeros(0, CHANNEL),
            "classes": np.zeros(64, CLASS),
            "channel_of": np.zeros(64, np.int32),
            "found": np.zeros(0, np.int32),
        }
        for name in ("dirty", "full", "touched", "reached"):
            self._fluid[name] = np.zeros(count, np.int32)
        for name in ("instant", "spare", "other"):
            self._fluid[name] = np.zeros(0, np.int32)
        meta = self._arrays["meta"]
        meta[FLOW_FREE] = meta[MEMBER_FREE] = _NONE

    def _bind_model(self, first: int, job: int, src: I32, dst: I32, channel: I32) -> None:
        numbers = self._numbers.number(job, src, dst, channel)
        self._extend("channel_of", first + len(src))
        self._fluid["channel_of"][first : first + len(src)] = numbers
        old = len(self._fluid["channels"])
        if len(self._numbers) > old:
            self._extend("channels", len(self._numbers))
            self._fluid["channels"]["head"][old:] = _NONE

    def _open_group(self, group: FlowGroup) -> None:
        if not MIN_WEIGHT <= group.weight <= MAX_WEIGHT:
            raise NetworkError(f"fair_share: weight {group.weight} is not in [{MIN_WEIGHT}, {MAX_WEIGHT}]")
        if group.priority < 0:
            raise NetworkError(f"fair_share: priority {group.priority} is below 0, the class served first")
        self._extend("classes", group.handle + 1)
        one = self._fluid["classes"][group.handle]
        one["weight"] = round(group.weight * _WEIGHT_UNIT)
        one["priority"] = group.priority

    def _extend(self, name: str, need: int) -> None:
        old = self._fluid[name]
        if need > len(old):
            new = np.zeros(max(need, 2 * len(old)), old.dtype)
            new[: len(old)] = old
            self._fluid[name] = new

    def _grow_model(self, what: int) -> None:
        meta = self._arrays["meta"]
        if what == NEED_FLOWS:
            meta[FLOW_FREE] = self._chain("flows", "next", int(meta[FLOW_FREE]))
            for name in ("drains", "found"):
                self._extend(name, len(self._fluid["flows"]))
        elif what == NEED_MEMBERS:
            old = len(self._fluid["members"])
            meta[MEMBER_FREE] = self._chain("members", "after", int(meta[MEMBER_FREE]))
            meta[MEMBER_LEFT] += len(self._fluid["members"]) - old
        else:
            for name in ("instant", "spare", "other"):
                self._extend(name, len(self._arrays["calendar"].events))

    def _chain(self, name: str, chain: str, head: int) -> int:
        """Double an array of slots; the first of its free ones, chained."""
        old = len(self._fluid[name])
        self._extend(name, max(1024, 2 * old))
        made = self._fluid[name][chain]
        made[old:] = np.arange(old + 1, len(made) + 1)
        made[-1] = head
        return old

    def _run(self, core: Core, horizon_ps: int) -> int:
        return int(run_fair(core, Fluid(**self._fluid), horizon_ps))

    def _next_instant(self) -> int:
        # A grant is closed for completions, so it has to end before a drain that was not taken yet.
        start, count = super()._next_instant(), int(self._arrays["meta"][DRAIN_N])
        return min(start, int(self._fluid["drains"][0]["time"]) - 1) if count else start

    def statistics(self) -> NetworkStatistics:
        """See :class:`~cosim.network.simulator.NetworkSimulator`."""
        so_far = super().statistics()
        if not (self._fluid["links"]["used"] > 0).any():
            return so_far
        meta = self._arrays["meta"].copy()
        _settle(meta, so_far.busy_ps, self._fluid["links"], int(meta[GRANT]))
        return NetworkStatistics(
            so_far.link_bytes,
            int(meta[BIN_PS]),
            so_far.busy_ps,
            so_far.flows_started,
            so_far.flows_completed,
            so_far.events,
        )


class FairShare(Spec):
    """Flow-level max-min fair sharing with weights and strict priorities."""

    shares_by_weight: ClassVar[bool] = True

    def build(self) -> NetworkSimulator:
        """A fresh network."""
        return FairShareNetwork()
