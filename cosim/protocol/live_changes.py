"""Changes that nobody knew of when a session opened, on the wire and back: links, routes, a control."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cosim.errors import NetworkError
from cosim.fabric.changes import LinkChange, RouteChange
from cosim.network.flows import F64
from cosim.protocol.flat_flows import array
from cosim.protocol.refusal import Refusal
from cosim.protocol.v1 import network_simulator_pb2 as pb


def encode_changes(changes: Sequence[LinkChange | RouteChange], into: pb.Changes) -> None:
    """Add changes to a message."""
    for one in changes:
        if isinstance(one, RouteChange):
            into.route_ps.append(one.time_ps)
            into.dead.extend(one.dead)
            into.dead_end.append(len(into.dead))
        else:
            into.time_ps.append(one.time_ps)
            into.link.append(one.link)
            into.rate_bps.append(one.rate_bps)


def encode_control(values: Mapping[str, Any], into: pb.Changes) -> None:
    """Add parameters of a control to a message; of one name the last value counts.

    Raises
    ------
    NetworkError
        A value that JSON does not have.
    """
    for name, value in values.items():
        try:
            into.control[name] = json.dumps(value, default=_plain)
        except TypeError as error:
            raise NetworkError(f"{name}={value!r} can't be sent to a server: {error}") from None


def _plain(value: Any) -> Any:
    """A number of NumPy as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no number, text or list of these")


def decode_control(message: pb.Changes) -> dict[str, Any]:
    """Read parameters of a control.

    Raises
    ------
    Refusal
        INVALID_FLOWS: no JSON.
    """
    try:
        return {name: json.loads(message.control[name]) for name in sorted(message.control)}
    except ValueError as error:
        raise Refusal("INVALID_FLOWS", f"a parameter is JSON: {error}", field="changes.control") from None


def decode_changes(message: pb.Changes, own_bps: F64, granted_ps: int) -> list[LinkChange | RouteChange]:
    """Read changes of links with these rates of their own, from the grant on.

    Raises
    ------
    Refusal
        INVALID_FLOWS: columns that don't fit each other, links or rates that can't be. CAUSALITY: a change
        before the grant.
    """
    time, link = array(message.time_ps, np.int64), array(message.link, np.int64)
    rate, route = array(message.rate_bps, np.float64), array(message.route_ps, np.int64)
    ends, dead = array(message.dead_end, np.int64), array(message.dead, np.int64)
    starts = np.concatenate([[0], ends])
    columns = len(time) == len(link) == len(rate) and len(route) == len(ends)
    if not columns or (np.diff(starts) < 0).any() or starts[-1] != len(dead):
        raise Refusal("INVALID_FLOWS", "the columns of changes don't fit each other", field="changes")
    most = len(own_bps)
    for field, named in (("link", link), ("dead", dead)):
        if len(named) and named.max() >= most:
            raise Refusal(
                "INVALID_FLOWS", f"a change of link {named.max()} of {most}", field=f"changes.{field}"
            )
    if not (np.isfinite(rate) & (rate >= 0) & (rate <= own_bps[link])).all():
        raise Refusal("INVALID_FLOWS", "a link's rate is from 0 to its own", field="changes.rate_bps")
    for when in (time, route):
        if len(when) and when.min() < granted_ps:
            raise Refusal(
                "CAUSALITY", f"a change was given for {when.min()} ps, but {granted_ps} ps had been granted"
            )
    sets = [tuple(dead[low:high].tolist()) for low, high in zip(starts, ends, strict=False)]
    if any(list(one) != sorted({*one}) for one in sets):
        raise Refusal("INVALID_FLOWS", "a set of dead links ascends", field="changes.dead")
    rows = zip(time.tolist(), link.tolist(), rate.tolist(), strict=True)
    return [LinkChange(*row) for row in rows] + [
        RouteChange(when, one) for when, one in zip(route.tolist(), sets, strict=True)
    ]
