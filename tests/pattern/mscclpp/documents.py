"""Small execution plans as MSCCL++'s tools write them, and those that its repository has, where they are."""

from __future__ import annotations

from typing import Any

from tests.inputs import BESIDE

PLANS = sorted((BESIDE / "measured" / "device" / "plans").glob("*.json"))
"""Eleven of github.com/microsoft/mscclpp (MIT); empty where they are not at hand."""

Json = dict[str, Any]


def local(kind: str, index: int, size: int = 1) -> Json:
    return {"type": kind, "index": index, "size": size}


def remote(index: int, size: int = 1, buffer: int = 0) -> Json:
    return {"buffer_id": buffer, "index": index, "size": size}


def op(name: str, src: list[Json] | None = None, dst: list[Json] | None = None, **more: Any) -> Json:
    found: Json = {"name": name, "channel_type": "memory", **more}
    if src is not None:
        found["src_buff"] = src
    if dst is not None:
        found["dst_buff"] = dst
    return found


SIGNAL, WAIT = op("signal", channel_ids=[0]), op("wait", channel_ids=[0])


def pair(ops: list[list[Json]]) -> Json:
    """Two GPUs of one thread block each, which reach each other's input and scratch."""
    return {
        "name": "pair", "collective": "allreduce", "inplace": True, "num_threads_per_block": 256,
        "gpus": [
            {
                "id": gpu, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 2,
                "channels": [{"channel_type": "memory", "connected_to": [1 - gpu]}],
                "remote_buffers": [
                    {"rank": 1 - gpu, "type": kind, "access_channel_types": ["memory"]}
                    for kind in ("i", "s")
                ],
                "threadblocks": [
                    {
                        "id": 0, "ops": ops[gpu],
                        "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                        "remote_buffer_refs": [
                            {"access_channel_type": "memory", "remote_buffer_ids": [0, 1]}
                        ],
                    }
                ],
            }
            for gpu in (0, 1)
        ],
    }  # fmt: skip


def two_shot() -> Json:
    """Each GPU adds up its chunk, and stores it to the other."""

    def ops(gpu: int) -> list[Json]:
        both = [local("i", gpu), remote(gpu)]
        return [SIGNAL, WAIT, op("rres", both, [local("i", gpu), remote(gpu)]), SIGNAL, WAIT]

    return pair([ops(0), ops(1)])


def pass_on() -> Json:
    """Each GPU sends its input, as packets, to the next one's output."""
    ops = [
        op("ppkt", [local("i", 0, 2)], [remote(0, 2, buffer=1)]),
        op("upkt", [local("s", 0, 2)], [local("o", 0, 2)]),
    ]
    return {**pair([ops, ops]), "collective": "sendrecv", "inplace": False}


def multicast_packets() -> Json:
    """All-gather: each GPU packs its input, and a switch stores the packets in all, itself among them."""

    def ops(gpu: int) -> list[Json]:
        mine = local("s", gpu)
        return [
            op("cpkt", [local("o", gpu)], [mine]),
            op("gstorepkt", [mine], [{"switch_channel_id": 0, "index": gpu, "size": 1}]),
            op("upkt", [local("s", 0, 2)], [local("o", 0, 2)]),
        ]

    plan = {**pair([ops(0), ops(1)]), "collective": "allgather"}
    for gpu in plan["gpus"]:
        gpu["input_chunks"] = 1
        gpu["channels"].append(
            {"channel_type": "switch", "buffer_type": "s", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}
        )
        gpu["threadblocks"][0]["channels"].append({"channel_type": "switch", "channel_ids": [0]})
    return plan


def packets() -> Json:
    """Each GPU sends all that it has as packets, and adds up what comes."""
    ops = [
        op("ppkt", [local("i", 0, 2)], [remote(0, 2, buffer=1)]),
        op("repkt", [local("i", 0, 2), local("s", 0, 2)], [local("i", 0, 2)]),
    ]
    return pair([ops, ops])
