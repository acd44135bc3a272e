"""What a report shows of one run: plain values, and columns for the browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from cosim.results.critical_path import KINDS
from cosim.results.exposed import exposed_by_kind
from cosim.results.measures import MEASURES
from cosim.results.optable import COMMUNICATION, COMPUTE, HOST
from cosim.results.path_parts import path_parts
from cosim.results.purposes import PURPOSES
from cosim.results.render.page import Lines
from cosim.results.render.scheduling_page import scheduling_section
from cosim.results.report.event_data import event_data
from cosim.results.report.fabric import FabricMap, draw_map
from cosim.results.report.lanes import Lanes, lanes
from cosim.results.report.message_data import message_data
from cosim.results.report.series_data import series_data
from cosim.results.report.size_data import size_data
from cosim.results.report.source import I64, ReportSource
from cosim.results.report.user_data import user_data
from cosim.results.summary import Summary
from cosim.workload.program import OpKind

Array = NDArray[Any]
MOST_BINS = 64
MOST_LINK_CELLS = 400_000
MOST_ITERATIONS = 2_000
MOST_GROUPS = 64
MOST_JOBS = 8
TRAFFIC_BINS = 24
MOST_SHARED_BINS = 512
MOST_STEPS = 20_000
SHADES = ("compute", "memory", "host", "remote", *PURPOSES)
"""What an operation is drawn as: a computation, an access of memory, the host, an access of remote memory, or
communication by what it is for. The first two hide communication.
"""


def run_data(source: ReportSource) -> tuple[dict[str, Any], dict[str, Array]]:
    """(Plain values, columns) of one run.

    Columns: ``op_*`` and ``message_*`` of the timeline's lanes, ``path_*``, ``iteration_*`` of each job,
    ``line_*`` and ``link_*`` of the fabric, ``traffic_*``, ``shared_*``, ``fct_*``, ``size_*``, ``series_*``.
    """
    summary = source.summary.to_json()
    for job in summary["jobs"]:
        job.pop("finish_ps")  # a number for each rank
    shown = lanes(source)
    head: dict[str, Any] = {
        "summary": summary,
        "exposed": exposed_by_kind(source.columns),
        "alone": dict(source.alone or {}),
        **_settings(source.settings),
        **_scheduling(source.summary),
        "events": event_data(source),
        "computing": MEASURES["gpu_utilisation"].of(source.summary, {}),
        "timeline": _timeline(source, shown),
        "path_kinds": [*KINDS],
        "paths": [_path_head(source, job) for job in range(len(source.summary.jobs))],
    }
    columns = {
        **_operations(source, shown, head),
        **_path(source, shown, head),
        **message_data(source, shown, head),
        **_iterations(source),
        **_traffic(source, head),
        **_shared_links(source, head),
        **_fct(source, head),
        **size_data(source, head),
    }
    columns |= _fabric(source, head) | series_data(source, head) | user_data(source, head)
    return head, columns


def _settings(settings: Any) -> dict[str, str]:
    """What is asked, and the scenario as YAML."""
    if settings is None:
        return {"question": "", "settings": ""}
    asked = {name: value for name, value in settings.items() if name != "description"}
    told = yaml.safe_dump(asked, sort_keys=False, allow_unicode=True, width=90)
    return {"question": str(settings.get("description") or ""), "settings": told}


def _scheduling(summary: Summary) -> dict[str, list[Any]]:
    """Lines about a queue, and lines and tables of what a scheduler decided, as the terminal has them."""
    found = summary.scheduling
    if found is None:
        return {"queued": [], "decided": []}
    parts = [
        {"lines": [line.strip() for line in part.lines]}
        if isinstance(part, Lines)
        else {"rows": [list(row) for row in part.rows]}
        for part in scheduling_section(summary).parts
    ]
    return {
        "queued": parts[0]["lines"] if found.queue else [],
        "decided": parts[1:] if found.queue else parts,
    }


def _timeline(source: ReportSource, shown: Lanes) -> dict[str, Any]:
    found = source.columns
    names = found["node_name"].tolist()
    jobs, numbers = source.job_of_ranks(), source.rank_numbers()
    simulated = np.diff(found["job_ptr"])
    hosts = _hosts(found, names, source.summary.num_endpoints)
    copies = [job.num_ranks // max(n, 1) for job, n in zip(source.summary.jobs, simulated, strict=True)]
    return {
        "said": shown.said,
        "shades": SHADES,
        "streams": found["stream_name"].tolist(),
        "lanes": [
            {
                "job": int(jobs[rank]),
                "rank": int(numbers[rank]),
                "node": names[int(found["job_endpoints"][rank])],
                "alike": int(alike * copies[jobs[rank]]),
                "host": hosts.get(int(found["job_endpoints"][rank]), ""),
            }
            for rank, alike in zip(shown.ranks.tolist(), shown.alike.tolist(), strict=True)
        ],
        "starts": [job.start_ps for job in source.summary.jobs],
    }


def _operations(source: ReportSource, shown: Lanes, head: dict[str, Any]) -> dict[str, Array]:
    """Operations of each lane in order of start; ``op_name`` is a place in ``texts``."""
    found, rows = source.columns, shown.rows
    rank = (found["job_ptr"][found["op_job"]] + found["op_rank"])[rows]
    columns: dict[str, Array] = {
        "op_lane": np.searchsorted(shown.ranks, rank),
        "op_iteration": found["op_iteration"][rows],
        "op_start": found["op_start_ps"][rows],
        "op_time": (found["op_end_ps"] - found["op_start_ps"])[rows],
        "op_number": found["op_op"][rows],
    }
    row = found["rank_row"][rank] + found["op_op"][rows]
    columns["op_stream"] = found["row_stream"][row]
    columns["op_shade"] = _shades(found)[row]
    used, columns["op_name"] = np.unique(found["row_name"][row], return_inverse=True)
    head["texts"] = found["row_text"][used].tolist()
    return columns


def _shades(found: Mapping[str, Array]) -> Array:
    """int8 of each row of programs: its place in :data:`SHADES`."""
    layer = found["row_layer"]
    named = [*found["purpose_text"].tolist(), "other"]
    of_purpose = np.array([SHADES.index(one) for one in named], np.int8)[found["row_purpose"]]
    timed = (layer == COMPUTE) & (found["row_kind"] == [*OpKind].index(OpKind.MEMORY))
    plain = np.where(timed, 1, np.where(layer == COMPUTE, 0, np.where(layer == HOST, 2, 3)))
    return np.asarray(np.where(layer == COMMUNICATION, of_purpose, plain), np.int8)


def _hosts(found: Mapping[str, Array], names: list[str], endpoints: int) -> dict[int, str]:
    """What each endpoint belongs to: the part before the point in the name of a switch beside it, host3 of
    host3.nvswitch, or that switch.
    """
    src, dst = found["link_src"], found["link_dst"]
    up = (src < endpoints) & (dst >= endpoints)
    beside = [(int(a), names[b].partition(".")) for a, b in zip(src[up], dst[up].tolist(), strict=True)]
    # Several planes: the switch of the first, unless one is a part of the host.
    return {
        one: name for inside in ("", ".") for one, (name, dot, _) in reversed(beside) if dot in (inside, ".")
    }


def _path_head(source: ReportSource, job: int) -> dict[str, Any]:
    parts = path_parts(source.columns, job)
    return {"parts": [asdict(part) for part in parts[:24]]}


def _path(source: ReportSource, shown: Lanes, head: dict[str, Any]) -> dict[str, Array]:
    found = source.columns
    if not len(found["path_job"]):
        return {}
    rows = np.arange(len(found["path_job"]))[-MOST_STEPS:]
    base = found["job_ptr"][found["path_job"][rows]] + found["path_rank"][rows]
    kinds, kind = np.unique(found["path_kind"][rows], return_inverse=True)
    names, name = np.unique(found["path_name"][rows], return_inverse=True)
    head["path_texts"] = names.tolist()
    order = np.array([KINDS.index(one) for one in kinds.tolist()])
    return {
        "path_job": found["path_job"][rows],
        "path_iteration": found["path_iteration"][rows],
        "path_kind": order[kind],
        "path_name": name,
        "path_lane": shown.lane_of[base],
        "path_number": source.rank_numbers()[base],
        "path_op": found["path_op"][rows],
        "path_src": found["path_src"][rows],
        "path_dst": found["path_dst"][rows],
        "path_start": found["path_start_ps"][rows],
        "path_time": (found["path_end_ps"] - found["path_start_ps"])[rows],
    }


def _iterations(source: ReportSource) -> dict[str, Array]:
    return {
        f"iteration_{job}": source.iterations(job)[: MOST_ITERATIONS + 1]
        for job in range(len(source.summary.jobs))
    }


def _fabric(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    found = source.columns
    names, endpoints = found["node_name"].tolist(), source.summary.num_endpoints
    src, dst = found["link_src"], found["link_dst"]
    dims = found["topology_dims"].tolist()
    drawn = draw_map(names, endpoints, src, dst, dims)
    shares, bin_ps = shares_over_time(found, source.summary.end_ps)
    head["fabric"] = {
        "boxes": [
            dict(zip(("label", "x", "y", "room", "size", "endpoint"), one, strict=True))
            for one in zip(
                drawn.label,
                drawn.x.round(5).tolist(),
                drawn.y.round(5).tolist(),
                drawn.room.round(5).tolist(),
                drawn.size.tolist(),
                drawn.is_endpoint.tolist(),
                strict=True,
            )
        ],
        "bins": len(shares),
        "bin_ps": bin_ps,
        "nodes": names,
        "counted": found["link_counted_name"].tolist(),
    }
    each = shares.size <= MOST_LINK_CELLS
    columns: dict[str, Array] = {
        "line_a": drawn.a,
        "line_b": drawn.b,
        "line_bend": drawn.bend,
        "line_share": _of_lines(drawn, shares).T.reshape(-1),
        "link_line": drawn.line,
        "link_src": src,
        "link_dst": dst,
        "link_rate": np.rint(found["link_rate_bps"]),
        "link_bytes": found["link_bytes"],
        "link_busy": found["link_busy_ps"].sum(axis=0),
        "link_share": shares.T.reshape(-1) if each else np.zeros(0, np.int64),
    }
    columns["link_rate"] = columns["link_rate"].astype(np.int64)
    columns["link_pairs"] = found["link_pairs"]
    columns |= {f"use_{name}": found[f"use_{name}"] for name in ("link", "src", "dst", "bytes", "job")}
    for k, name in enumerate(head["fabric"]["counted"]):
        columns[f"counted_{name}"] = np.rint(found["link_counted"][k]).astype(np.int64)
    return columns


def shares_over_time(found: Mapping[str, Array], end_ps: int) -> tuple[I64, int]:
    """(int64[bins, links] in thousandths of the rate, length of a bin in ps), at most :data:`MOST_BINS`."""
    busy, bin_ps = found["link_busy_ps"], int(found["link_bin_ps"])
    used = max(1, min(len(busy), -(-end_ps // bin_ps)))
    each = -(-used // MOST_BINS)
    starts = np.arange(0, used, each)
    sums = np.add.reduceat(busy[:used], starts, axis=0) if busy.size else np.zeros((len(starts), 0), np.int64)
    lengths = np.minimum((starts + each) * bin_ps, max(end_ps, 1)) - starts * bin_ps
    shares = np.rint(1000 * sums / np.maximum(lengths, 1)[:, None]).astype(np.int64)
    return shares, each * bin_ps


def _of_lines(drawn: FabricMap, shares: I64) -> I64:
    """The busiest link of each drawn line."""
    out = np.zeros((len(shares), len(drawn.a)), np.int64)
    on_line = drawn.line >= 0
    for k in range(len(shares)):
        np.maximum.at(out[k], drawn.line[on_line], shares[k][on_line])
    return out


def _traffic(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    """Bytes between groups of endpoints that are neighbours by number, over time; of switches, too, where
    messages begin or end there.
    """
    found, nodes = source.columns, source.summary.num_endpoints
    for side in ("traffic_src", "traffic_dst"):
        nodes = max(nodes, int(found[side].max(initial=0)) + 1)
    each = max(1, -(-nodes // MOST_GROUPS))
    groups = -(-nodes // each)
    sizes, bin_ps = found["traffic_bytes"], int(found["traffic_bin_ps"])
    used = max(1, min(len(sizes), -(-source.summary.end_ps // bin_ps)))
    step = -(-used // TRAFFIC_BINS)
    pair = found["traffic_src"].astype(np.int64) // each * groups + found["traffic_dst"] // each
    pairs, place = np.unique(pair, return_inverse=True)
    starts = np.arange(0, used, step)
    sums = np.zeros((len(starts), len(pairs)), np.int64)
    np.add.at(sums.T, place, np.add.reduceat(sizes[:used], starts, axis=0).T)
    head["traffic"] = {"groups": groups, "each": each, "bins": len(starts), "bin_ps": step * bin_ps}
    head["traffic"] |= {"goodput_bins": used, "goodput_bin_ps": bin_ps}
    return {
        "traffic_pair": pairs,
        "traffic_bytes": sums.reshape(-1),
        "goodput_bytes": _goodput(source, sizes[:used]).reshape(-1),
    }


def _goodput(source: ReportSource, sizes: Array) -> I64:
    """What reached endpoints over time, int64[jobs or 1, bins]; ``sizes`` are int64[bins, pairs]."""
    arrived = _by_job(source, sizes)
    return source.reached(arrived if len(arrived) else sizes.sum(axis=1)[None])


def _shared_links(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    """What each job sent over the busiest links that several use."""
    found = source.columns
    if not len(found["shared_sent_bytes"]):
        return {}
    bin_ps = int(found["traffic_bin_ps"])
    used = max(1, min(found["shared_sent_bytes"].shape[1], -(-source.summary.end_ps // bin_ps)))
    step = -(-used // MOST_SHARED_BINS)
    starts = np.arange(0, used, step)
    sums = np.add.reduceat(found["shared_sent_bytes"][:, :used], starts, axis=1)
    rows = [
        {"link": int(link), "job": int(job)}
        for link, job in zip(found["shared_link"], found["shared_job"], strict=True)
    ]
    head["shared"] = {"rows": rows, "bins": sums.shape[1], "bin_ps": step * bin_ps}
    return {"shared_sent_bytes": sums.reshape(-1)}


def _by_job(source: ReportSource, sizes: Array) -> I64:
    """Bytes of each job's own endpoints over time, int64[jobs, bins], of int64[bins, pairs]; nothing where
    jobs share endpoints, or of one.
    """
    found, jobs = source.columns, len(source.summary.jobs)
    endpoints = found["job_endpoints"]
    whole = int(found["job_ptr"][-1]) == sum(job.num_ranks for job in source.summary.jobs)
    if not 1 < jobs <= MOST_JOBS or not whole or len(np.unique(endpoints)) < len(endpoints):
        return np.zeros((0, 0), np.int64)
    job = np.full(len(found["node_name"]), -1, np.int64)
    job[endpoints] = source.job_of_ranks()
    of_pair = job[found["traffic_src"]]
    known = of_pair >= 0  # a memory node's or a switch's are nobody's
    out = np.zeros((jobs, len(sizes)), np.int64)
    np.add.at(out, of_pair[known], sizes.T[known])
    return out


def _fct(source: ReportSource, head: dict[str, Any]) -> dict[str, Array]:
    found = source.columns
    used = np.flatnonzero(found["fct_counts"])
    head["fct"] = {"messages": int(found["fct_counts"].sum())}
    return {"fct_time": found["fct_edges_ps"][used + 1], "fct_count": found["fct_counts"][used]}
