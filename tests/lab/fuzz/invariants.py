"""What holds of every run, whatever it is of."""

from __future__ import annotations

import numpy as np

from cosim.engine.records import JobInfo, Records
from cosim.results.too_fast import too_fast
from cosim.workload.program import OpKind

UNSHARED = frozenset({"congestion_unaware"})
"""Networks that give a link away more than once, on purpose."""
_NS = 1000


def check(records: Records) -> None:
    """All of them; what the run did not keep is left out.

    Raises
    ------
    AssertionError
        Says which does not hold.
    """
    times_go_on(records)
    links_keep_to_their_rates(records)
    if records.messages is not None:
        found = too_fast(records)
        assert not found, "; ".join(map(str, found))
    bytes_are_conserved(records)
    for number, job in enumerate(records.jobs):
        if job.pace is None and job.folding is None:
            no_iteration_beats_its_critical_path(records, number, job)
    no_collective_beats_its_bandwidth(records)


def times_go_on(records: Records) -> None:
    """Nothing ends before it starts, nor the run before its last operation."""
    ops = records.ops
    assert (ops.start_ps >= 0).all(), "an operation starts before 0"
    assert (ops.end_ps >= ops.start_ps).all(), "an operation ends before it starts"
    assert records.end_ps >= ops.end_ps.max(initial=0), "the run ends before an operation"
    for ends in records.iteration_end_ps:
        assert (np.diff(ends, axis=0) >= 0).all(), "an iteration ends before the one before"
    for one in records.collectives:
        assert one.start_ps <= one.ready_ps <= one.end_ps, f"{one.name} is not in order"
    if records.messages is not None:
        assert (records.messages.end_ps >= records.messages.start_ps).all(), (
            "a message comes before it is sent"
        )


def links_keep_to_their_rates(records: Records) -> None:
    """No link sends more than its rate allows in all of the run; rounding to ns is let pass.

    But in one that was interrupted: bytes that are still under way may be counted, as they are when sent.
    """
    if records.network in UNSHARED or records.interrupted:
        return
    sent, rate = records.links.link_bytes.astype(np.float64), records.topology.link_rate_bps
    latest = float(max(records.end_ps, records.fct.edges_ps[-1] if len(records.fct.edges_ps) else 0))
    if records.messages is not None:
        latest = float(max(records.end_ps, records.messages.end_ps.max(initial=0)))
    slack = _NS * (1.0 + records.num_messages) if records.network == "congestion_aware" else 1.0
    over = sent * 8e12 / rate - latest - slack
    worst = int(np.argmax(over)) if len(over) else 0
    assert not len(over) or over[worst] <= 1e-9 * latest, (
        f"{records.topology.link_name(worst)} sent {sent[worst]:g} bytes in {latest:g} ps"
    )


def bytes_are_conserved(records: Records) -> None:
    """What endpoints received is what messages carried, and links carried it at least once a message."""
    if records.messages is None or records.interrupted:
        return
    messages, traffic = records.messages, records.traffic
    assert int(traffic.size_bytes.sum()) == int(messages.size_bytes.sum()), (
        "bytes asked and bytes received differ"
    )
    away = messages.size_bytes[messages.src != messages.dst].sum()
    assert int(records.links.link_bytes.sum()) >= int(away), "links carried less than was sent"


def no_iteration_beats_its_critical_path(records: Records, number: int, job: JobInfo) -> None:
    """On a stream computations follow one another, and each comes after what it waits for."""
    ends = records.iteration_end_ps[number]
    if not len(ends):
        return
    for rank in range(job.workload.world_size):
        streams: dict[str, int] = {}
        done: list[int] = []
        for op in job.workload.program(rank).operations:
            computed = op.duration_ps if op.kind is OpKind.COMPUTE else 0
            if computed and op.stream:
                streams[op.stream] = streams.get(op.stream, 0) + computed
            done.append(computed + max((done[one] for one in op.deps), default=0))
        least = max([*streams.values(), *done], default=0)
        own = ends[:, rank] - job.start_ps
        counts = np.arange(1, len(own) + 1)
        assert (own >= least * counts).all(), (
            f"rank {rank} ended an iteration before it could have computed it"
        )


def _bytes_of(collective: str, ranks: int, size: int) -> tuple[float, float]:
    """What each rank has to send at least, and to receive; ``size`` as the collective counts it."""
    most = (ranks - 1) / ranks * size
    return {
        "all_reduce": (most, most),
        "reduce_scatter": (most, size / ranks if ranks > 1 else 0.0),
        "all_gather": (size if ranks > 1 else 0.0, (ranks - 1.0) * size),
        "all_to_all": (most, most),
    }.get(collective, (0.0, 0.0))


def no_collective_beats_its_bandwidth(records: Records) -> None:
    """All that a rank has to send goes by the links of its endpoint, all that it receives comes by them.

    A byte a message may be missing where sizes are rounded.
    """
    if records.network in UNSHARED:
        return
    topology = records.topology
    out, into = np.zeros(topology.num_nodes), np.zeros(topology.num_nodes)
    np.add.at(out, topology.link_src, topology.link_rate_bps)
    np.add.at(into, topology.link_dst, topology.link_rate_bps)
    for one in records.collectives:
        job = records.jobs[one.job]
        ranks = [rank for rank in one.ranks if rank < len(job.endpoints)]
        places = job.endpoints[ranks]
        if len(set(places.tolist())) != len(one.ranks):
            continue
        sent, received = _bytes_of(one.collective, len(ranks), one.size_bytes)
        least = 8e12 * max(sent / out[places].min(), received / into[places].min())
        slack = (_NS + 8e12 / min(out[places].min(), into[places].min())) * (one.messages + 1) + 1e-9 * least
        took = one.end_ps - one.start_ps
        assert took >= least - slack, f"{one.name} took {took} ps, {least:g} ps is the least its bytes take"
