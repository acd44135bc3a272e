"""NCCL's all-to-all between hosts by PXN: a message takes the NIC of its receiver's rail.

A message to a GPU of another host whose NIC is another's goes by NVLink to the GPU that has the receiver's
place in the sender's host, and from there by that GPU's NIC (``NCCL_P2P_PXN_LEVEL`` 2, NCCL's default:
``ncclTopoGetNetDev`` in ``search.cc``), so that all of it stays on its rail. What a GPU hands to one peer
goes in order: what is for the next host first, what is for the peer itself last.

Not modelled: that a message is handed on in chunks, not as a whole, and that NICs send what is for the same
GPU together.
"""

from __future__ import annotations

import numpy as np

from cosim.pattern.assemble import COMPLETION, START, Block, assemble, entries, exits
from cosim.pattern.costs import Costs
from cosim.pattern.template import COPY, I64, Collective, Template


def pxn_all_to_all(num_ranks: int, size_bytes: int, hosts: int, nics: int, costs: Costs) -> Template:
    """An all-to-all over ``hosts`` of equal numbers of GPUs, ``nics`` of each in use."""
    local = num_ranks // hosts
    message, delay = costs.share(size_bytes, num_ranks), costs.endpoint_delay_ps
    rail = np.arange(local) * nics // local
    # Axes: hosts further round, host, place of the sender, place of the receiver.
    far, host, mine, peer = np.indices((hosts, hosts, local, local))
    src, dst = host * local + mine, (host + far) % hosts * local + peer
    handed = rail[mine] != rail[peer]
    first = (far > 0) & handed
    """Messages that are handed to a peer first."""
    hop = np.cumsum(first).reshape(first.shape) - 1
    hops, each = int(first.sum()), int(first.sum()) // max(hosts - 1, 1)
    relay = host * local + peer
    chunk = src * num_ranks + dst

    def block(rows: np.ndarray, sender: I64, receiver: I64, waits: I64, *, kind: int = COMPLETION) -> Block:
        return Block(
            int(rows.sum()),
            sender[rows],
            receiver[rows],
            waits[rows][:, None],
            (kind,),
            size_bytes=message,
            delay_ps=delay,
            chunk=chunk[rows],
            chunk_count=1,
            action=COPY,
        )

    # Numbers of flows: arrivals, then what is handed on, then what goes between hosts, then what stays.
    between, inside = far > 0, (far == 0) & (mine != peer)
    across = num_ranks + hops + np.cumsum(between).reshape(between.shape) - 1
    stays = num_ranks + hops + int(between.sum()) + np.cumsum(inside).reshape(inside.shape) - 1
    handing = num_ranks + hop
    last = handing[hosts - 1][None].repeat(hosts, axis=0)
    blocks = [
        entries(num_ranks),
        block(first & (far == 1), src, relay, handing - src),
        block(first & (far > 1), src, relay, np.full(first.shape, each)),
        block(between, np.where(handed, relay, src), dst, np.where(handed, across - handing, across - src)),
        block(inside, src, dst, np.where(handed & (hosts > 1), stays - last, stays - src)),
    ]
    end = num_ranks + hops + int(between.sum()) + int(inside.sum()) + np.arange(num_ranks)[:, None]
    flow = np.where(between, across, stays)
    arrives = flow[between | inside][np.argsort(dst[between | inside], kind="stable")].reshape(num_ranks, -1)
    issued = stays[inside].reshape(num_ranks, -1)
    kinds = (COMPLETION,) * arrives.shape[1] + (START,) * issued.shape[1]
    blocks.append(exits(num_ranks, np.concatenate([end - arrives, end - issued], axis=1), kinds, delay))
    return assemble(
        "nccl direct",
        Collective.ALL_TO_ALL,
        num_ranks,
        size_bytes,
        blocks,
        num_chunks=num_ranks**2,
        owner=np.tile(np.arange(num_ranks, dtype=np.int32), num_ranks),
    )
