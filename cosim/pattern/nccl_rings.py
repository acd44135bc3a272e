"""The order in which NCCL's rings pass GPUs: between hosts, or as it is given.

Messages of GPUs that have several NICs are cut into as many parts, each on a channel of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator

from cosim.errors import AlgorithmError
from cosim.pattern.template import I32, Template

Orders = tuple[tuple[int, ...], ...]


def _checked(rings: Orders | Literal["by_links"]) -> Orders | Literal["by_links"]:
    for order in rings if rings != "by_links" else ():
        if sorted(order) != list(range(max(len(rings[0]), 2))):
            raise ValueError(
                f"{list(order)} should have each rank from 0 to {max(len(rings[0]), 2) - 1} once"
            )
    return rings


GivenRings = Annotated[Orders | Literal["by_links"], AfterValidator(_checked)]


def given_rings(orders: Orders, num_ranks: int) -> I32:
    """int32[rings, ranks]: these orders, if they suit a group of so many ranks.

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
    return np.array(orders, np.int32)


def ring_orders(
    hosts: int, local: int, channels: int, *, alternate: bool, mesh: bool = False, sockets: int = 1
) -> I32:
    """int32[channels, hosts * local]: rings host by host, each entering a host by another of its NICs.

    Where a NIC has two GPUs or more a ring enters by one of them and leaves by another, all hosts alike, and
    stays on its rail (0 7 6 5 4 3 2 1 8 15 14 ...: what NCCL's search, ``search.cc``, finds first). Where a
    GPU has a NIC of its own, ``alternate`` passes every second host the other way round, so that a ring
    leaves by the NIC by which it enters the next host (``connect.cc``, "Alternate rings to avoid crossing
    rails": 0 7 6 5 4 3 2 1 9 10 11 12 13 14 15 8). Of an odd number of hosts the last and the first are
    alike, and each ring crosses there, as NCCL's do. Where NICs are on one switch the order is of no account,
    and hosts that are alike fold one by one, not in pairs. Not modelled: that NCCL may have all hosts alike
    and leave by another GPU's NIC (PXN) where NVLinks have a channel's rate to spare; rails are kept so, too.
    NCCL before 2.19.3 passes the GPUs of the other ``sockets`` first (``ncclTopoSearchNextGpuSort``).
    """
    enter = np.arange(channels) * local // channels
    far = np.arange(local)
    # Where each two GPUs have a link of their own: 0, 1, -1, 2, -2 ... from where a ring enters. Such paths
    # from all of an even number of GPUs take each link once, each way.
    steps = np.where(far % 2, (far + 1) // 2, -(far // 2)) if mesh else -far
    inside = (enter[:, None] + steps[None, :]) % local
    if sockets > 1:
        near = inside * sockets // local == (enter * sockets // local)[:, None]
        near[:, 0] = False  # where the ring enters stays first
        inside = np.take_along_axis(inside, np.argsort(near, axis=1, kind="stable"), axis=1)
    turned = alternate and local < 2 * channels
    ways = np.stack([inside, inside[:, ::-1] if turned else inside], axis=1)
    host = np.arange(hosts)
    ranks = host[None, :, None] * local + ways[:, host % 2]
    return np.ascontiguousarray(ranks.reshape(channels, hosts * local), np.int32)


def over_nics(template: Template, nics: int) -> Template:
    """The template with each message as ``nics`` messages on channels 0, 1 ...; what waited for it waits for
    all of them. Templates with repeated blocks stay as they are.
    """
    if nics == 1 or (template.block_repeat > 1).any():
        return template
    rows = len(template.src)
    parts = np.where((template.src != template.dst) & (template.bytes > 0), nics, 1)
    first = np.concatenate([[0], np.cumsum(parts)])
    old = np.repeat(np.arange(rows), parts)
    part = np.arange(first[-1]) - first[old]
    degree = np.diff(template.dep_ptr)
    waiting = np.repeat(np.arange(rows), degree)
    target = waiting - template.dep_distance
    # Each dependency becomes one on every part of its target, and each part of a row has all of them.
    wide = parts[target]
    dependency = np.repeat(np.arange(len(target)), wide)
    on = first[target[dependency]] + np.arange(len(dependency)) - np.repeat(np.cumsum(wide) - wide, wide)
    of_row = np.bincount(waiting, wide, rows).astype(np.int64)
    ptr = np.concatenate([[0], np.cumsum(of_row)])
    new_ptr = np.concatenate([[0], np.cumsum(of_row[old])])
    each = np.repeat(np.arange(len(old)), of_row[old])
    at = ptr[old[each]] + np.arange(len(each)) - new_ptr[each]
    size = template.bytes[old]
    cut = parts[old] > 1
    # A row's chunks, `nics` times as many, are dealt out in a row.
    count = template.chunk_count[old]
    return replace(
        template,
        num_chunks=template.num_chunks * nics,
        owner=np.repeat(template.owner, nics),
        src=template.src[old],
        dst=template.dst[old],
        bytes=np.where(cut, -(-size // nics), size),
        channel=np.where(cut, part, template.channel[old]).astype(np.int32),
        delay_ps=template.delay_ps[old],
        dep_ptr=new_ptr,
        dep_distance=each - on[at],
        dep_kind=template.dep_kind[dependency][at],
        block_row=first[template.block_row],
        chunk=(template.chunk[old] * nics + part * count).astype(np.int32),
        chunk_step=template.chunk_step[old] * np.int32(nics),
        chunk_count=np.where(cut, count, count * nics).astype(np.int32),
        action=template.action[old],
        shift=template.shift[old] * np.int32(nics),
        num_scratch=template.num_scratch * nics,
    )
