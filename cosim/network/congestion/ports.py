"""Ports: queues between changes of load, marks, drops, pauses, and what they count.

Loads are constant between two changes, so a queue is a straight line that bends where it empties or fills.
Marks follow RED on the queue itself, not an average: none below ``mark_from``, ``mark_most`` at ``mark_all``,
everything above it; with both equal, a step. The fraction marked is integrated exactly along the line.

Priorities: a class gets what those before it (lower numbers) leave of the link.
"""

from __future__ import annotations

import math
from typing import Any

from cosim.network.congestion.state import BINS, BYTES_PER_BPS_PS, QUEUE_BINS, CongestionState
from cosim.network.core import Core, add_share
from cosim.network.flows import F64
from cosim.network.jit import compiled, inlined, once

_DUST = 1e-3
"""Bytes; a queue that shrinks below it is empty."""
_DROP = 64.0


@inlined
def _marks_below(queue: float, low: float, high: float, most: float) -> float:
    """The integral of the marking probability from 0 to ``queue``."""
    if queue <= low:
        return 0.0
    if queue <= high:
        return most * 0.5 * (queue - low) * (queue - low) / (high - low)
    return most * 0.5 * (high - low) + (queue - high)


@inlined
def mean_mark(start: float, end: float, low: float, high: float, most: float) -> float:
    """The mean marking probability while a queue goes from ``start`` to ``end`` on a straight line."""
    least = min(start, end)
    largest = max(start, end)
    if largest <= low:
        return 0.0
    if largest - least <= 1e-9 * largest:
        if largest > high:
            return 1.0
        return most * (largest - low) / (high - low)
    low_part = _marks_below(least, low, high, most)
    return (_marks_below(largest, low, high, most) - low_part) / (largest - least)


@inlined
def queue_bin(queue: float) -> int:
    """32 to a power of two, as HdrHistogram has them; 0: less than 256 bytes."""
    if queue < 256.0:
        return 0
    mantissa, exponent = math.frexp(queue)
    return int(min(1 + (exponent - 9) * BINS + int((mantissa - 0.5) * 2 * BINS), QUEUE_BINS - 1))


@inlined
def bin_starts(number: int) -> float:
    """The least queue of a bin, but of the first."""
    return math.ldexp(1.0 + (number - 1) % BINS / BINS, 8 + (number - 1) // BINS)


@compiled
def count_served(histogram: F64, link: int, start: float, end: float, sent: float) -> None:
    """Count bytes that leave while a link's queue goes from ``start`` to ``end`` on a straight line."""
    least = min(start, end)
    largest = max(start, end)
    number = queue_bin(least)
    last = queue_bin(largest)
    each = sent / max(largest - least, 1.0)
    while number < last:
        top = bin_starts(number + 1)
        part = (top - least) * each
        histogram[link, number] += part
        sent -= part
        least = top
        number += 1
    histogram[link, last] += sent


@inlined
def settle_link(core: Core, fluid: CongestionState, link: int, now: int) -> None:
    """Bring the queues of a link to ``now``."""
    counts = fluid.counts[0]
    ports = fluid.ports
    one = fluid.links[link]
    begin = one.touched
    if begin >= now:
        return
    one.touched = now
    port = ports[link]
    total = 0.0
    # Most links of most instants: nothing waits, and all that comes passes.
    if counts.num_classes == 1 and port.queue == 0.0 and port.paused == 0 and port.load <= one.capacity:
        if port.load == 0:
            return
        total = float(port.load) * float(now - begin)
        port.served += total * BYTES_PER_BPS_PS
    else:
        total = _settle_queues(fluid, one, link, begin, now)
        if total == 0.0:
            return
    now_in = now >> core.state[0].bin_bits
    # Within a bin, which is nearly always; what is less than a picosecond of it is carried over in `busy`.
    if begin >> core.state[0].bin_bits == now_in and now_in < len(core.link_busy):
        part = total / float(one.capacity) + one.busy
        whole = int(part + 1e-6)
        one.busy = part - whole
        core.link_busy[now_in, link] += whole
    else:
        _spread(core, link, begin, now, total / (float(one.capacity) * float(now - begin)))


@inlined
def look_at_link(core: Core, fluid: CongestionState, link: int, now: int) -> None:
    """Bring the queues of a link to ``now``, where anything may wait: where nothing does there is nothing to
    see but for telemetry, and what has passed is counted when its load changes, in one piece, whoever looked
    in between.
    """
    if is_hot(fluid, link) or fluid.settings[0].wants_telemetry != 0.0:
        settle_link(core, fluid, link, now)


@compiled
def _spread(core: Core, link: int, begin: int, now: int, share: float) -> None:
    add_share(core, link, begin, now, min(share, 1.0))


@once
def _until_bend(fluid: CongestionState, link: int, capacity: float, left: float) -> float:
    """How long all goes on as it does, at most ``left``: until a class's queue empties, and leaves more to
    those after it.
    """
    num_links = len(fluid.links)
    step = left
    room = capacity
    at = link
    for _ in range(fluid.counts[0].num_classes):
        port = fluid.ports[at]
        at += num_links
        rate = room if port.paused == 0 else 0.0
        load = float(port.load)
        if port.queue > 0.0:
            # Only a queue that shrinks changes what is left for those after it: one that grows takes all it
            # may already.
            if rate > load:
                empty = port.queue / ((rate - load) * BYTES_PER_BPS_PS)
                if empty < step:
                    step = empty
            room -= rate
        else:
            room -= min(rate, load)
    return step


@once
def _overflow(one: Any, port: Any, rate: float, step: float, left: float, now: int) -> float:
    """Drop what the buffer can't hold; the queue's length after it.

    What arrives while the buffer is full is lost in the share that the load is above the rate: of each flow
    alike, as no queue tells them apart.
    """
    load = float(port.load)
    queue = port.queue
    change = (load - rate) * BYTES_PER_BPS_PS
    over = step
    if queue < one.buffer:
        over -= (one.buffer - queue) / change
        port.drop_from = now - int(left - step + over)
    port.losses += over * (load - rate) / load
    port.dropped += over * change
    return float(max(one.buffer, queue))


@once
def _mark(one: Any, port: Any, end: float, step: float) -> None:
    """Mark the share that RED would while the queue goes to ``end`` within ``step``."""
    queue = port.queue
    if max(queue, end) > one.mark_from:
        part = mean_mark(queue, end, one.mark_from, one.mark_all, one.mark_most)
        port.marks += part * step
        port.marked += part * step * float(port.load) * BYTES_PER_BPS_PS
    if end > port.peak:
        port.peak = end


@compiled
def _settle_queues(fluid: CongestionState, one: Any, link: int, begin: int, now: int) -> float:
    """Move the queues of link ``one`` from ``begin`` to ``now``; bits that left, times 10^12."""
    classes = fluid.counts[0].num_classes
    lossless = fluid.settings[0].lossless
    ports = fluid.ports
    num_links = len(fluid.links)
    capacity = float(one.capacity)
    left = float(now - begin)
    total = 0.0
    # What still comes to a dead link is gone.
    if one.capacity == 0:
        return total
    # Straight lines: from bend to bend until `now`.
    while left > 0.0:
        step = _until_bend(fluid, link, capacity, left)
        room = capacity
        at = link
        for _ in range(classes):
            port = ports[at]
            at += num_links
            load = float(port.load)
            queue = port.queue
            if load == 0.0 and queue == 0.0:
                continue
            rate = room if port.paused == 0 else 0.0
            change = (load - rate) * BYTES_PER_BPS_PS
            out = rate
            end = queue
            if queue > 0.0 or change > 0.0:
                end = queue + change * step
                # Left as it is, a rest of a thousandth of a byte would bend again and again.
                if change < 0.0 and end < _DUST:
                    end = 0.0
                if end > one.buffer and lossless == 0.0:
                    end = _overflow(one, port, rate, step, left, now)
                _mark(one, port, end, step)
            else:
                out = load
            port.queue = end
            sent = out * step * BYTES_PER_BPS_PS
            port.served += sent
            # Less than a byte in the mean waits for nothing that a histogram of queues could show.
            if queue + end >= 2.0:
                count_served(fluid.histogram, link, queue, end, sent)
            room -= out
        total += (capacity - room) * step
        left -= step
    return total


@compiled
def settle_all(core: Core, fluid: CongestionState, now: int) -> None:
    """Bring the queues of every link to ``now``."""
    for link in range(len(fluid.links)):
        settle_link(core, fluid, link, now)


@inlined
def least_queue(fluid: CongestionState) -> float:
    """Bytes; smaller queues go on as what comes in does: below a packet, or where ports pause nearly none."""
    return float(_DROP if fluid.settings[0].lossless != 0.0 else fluid.settings[0].mss)


@inlined
def service(fluid: CongestionState, port: int) -> float:
    """Bits per second that a port serves with, in the mean: less what classes before it take, and pauses."""
    links = fluid.links
    ports = fluid.ports
    k = ports[port].link
    rate = float(links[k].capacity)
    # A class that others leave nothing still has an end: times go on to be finite.
    least = rate / 64.0
    while k < port:
        rate -= float(ports[k].load)
        k += len(links)
    return float(max(rate * ports[port].duty, least))


@inlined
def passes(fluid: CongestionState, port: int, least: float) -> float:
    """The share of its load that a port passes on: less than all of it where it can't serve more, more where
    it works off a queue of over ``least`` bytes, which leaves in the proportions of what comes in.
    """
    ports = fluid.ports
    if ports[port].paused > 0:
        return 0.0
    load = float(ports[port].load)
    rate = left_for(fluid, port)
    if load == 0.0 or (load <= rate and ports[port].queue <= least):
        return 1.0
    return rate / load


@inlined
def left_for(fluid: CongestionState, port: int) -> float:
    """Bits per second that classes before a port's leave of its link: none while any of them has a queue,
    whatever comes to it, as that has the whole link until it is gone.
    """
    links = fluid.links
    k = fluid.ports[port].link
    rate = float(links[k].capacity)
    while k < port:
        before = fluid.ports[k]
        if before.paused == 0:
            if before.queue > 0.0:
                return 0.0
            rate -= min(rate, float(before.load))
        k += len(links)
    return float(rate)


@inlined
def is_hot(fluid: CongestionState, port: int) -> bool:
    """Whether anything on this link may wait."""
    links = fluid.links
    ports = fluid.ports
    link = ports[port].link
    load = 0
    k = link
    for _ in range(fluid.counts[0].num_classes):
        if ports[k].queue > 0.0 or ports[k].paused > 0:
            return True
        load += ports[k].load
        k += len(links)
    return bool(load > links[link].capacity)
