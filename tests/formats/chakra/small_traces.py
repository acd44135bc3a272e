"""The small Chakra traces that cases of the ASTRA-sim reference name, written anew.

Below ``chakra/microbenchmarks`` one collective of 1 MiB on 4, 8 and 16 ranks. Below ``chakra/p2p`` messages:
an incast, two flows to one rank, a fan-out, one message at each distance, a late receive, a send after a
computation, ring all-reduces (``redN``: a reduction of N us at each step), a receive of what nobody sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from cosim.formats.chakra.et_def_pb2 import Node
from tests.formats.chakra.trace_files import coll, node, write_ranks

MIB = 1 << 20
KINDS = ("all_gather", "all_reduce", "all_to_all", "reduce_scatter")
Rank = list[Node]


def write(folder: Path) -> Path:
    """Write every trace; the folder."""
    for name, ranks in _messages().items():
        write_ranks(folder / "chakra" / "p2p" / name, *ranks, prefix=name)
    for kind, num in product(KINDS, (4, 8, 16)):
        ranks = [[coll(0, kind.upper(), MIB, name=f"{kind}_{num}npus_1MB")]] * num
        write_ranks(folder / "chakra" / "microbenchmarks" / kind / f"{num}npus_1MB", *ranks, prefix=kind)
    return folder


def _messages() -> dict[str, list[Rank]]:
    idle, senders = [_compute(0, 1)], range(1, 9)
    from_0_to_1 = [[_send(0, 0, 1, 7)], [_recv(0, 0, 1, 7)], idle, idle]
    return {
        "comp_send": [[_compute(0, 100), _send(1, 0, 1, 7, deps=[0])], [_recv(0, 0, 1, 7)], idle, idle],
        "fanout": [[_send(0, 0, 1, 1), _send(1, 0, 2, 2)], [_recv(0, 0, 1, 1)], [_recv(0, 0, 2, 2)], idle],
        "incast8": [[_recv(k - 1, k, 0, k) for k in senders], *([_send(0, k, 0, k)] for k in senders)],
        "late_recv": [[_send(0, 0, 1, 7)], [_compute(0, 100), _recv(1, 0, 1, 7, deps=[0])], idle, idle],
        "norecv": [idle, [_recv(0, 0, 1, 7, size=1000)], idle, idle],
        "one_0_1": from_0_to_1,
        "one_0_2": [[_send(0, 0, 2, 7)], idle, [_recv(0, 0, 2, 7)], idle],
        "one_rdv": from_0_to_1,
        "twoflows": [[_send(0, 0, 2, 1)], [_send(0, 1, 2, 2)], [_recv(0, 0, 2, 1), _recv(1, 1, 2, 2)], idle],
        **{
            f"ringar_{num}_red{us}": [_ring(rank, num, us) for rank in range(num)]
            for num in (4, 8)
            for us in (0, 5)
        },
    }


def _ring(rank: int, num: int, reduce_us: int) -> Rank:
    """An all-reduce of 1 MiB: what came at a step, reduced in the first half, lets the next one go."""
    made: Rank = []
    deps: list[int] = []
    for step in range(2 * (num - 1)):
        made.append(_send(len(made), rank, (rank + 1) % num, step, size=MIB // num, deps=deps))
        made.append(_recv(len(made), (rank - 1) % num, rank, step, size=MIB // num, deps=deps))
        deps = [len(made) - 1]
        if reduce_us and step < num - 1:
            made.append(_compute(len(made), reduce_us, deps=deps))
            deps = [len(made) - 1]
    return made


def _compute(number: int, us: int, *, deps: Sequence[int] = ()) -> Node:
    return node(number, "COMP", us=us, name=f"comp_{us}us", deps=deps)


def _send(number: int, src: int, dst: int, tag: int, *, size: int = MIB, deps: Sequence[int] = ()) -> Node:
    return _message("SEND", number, src, dst, tag, size, deps)


def _recv(number: int, src: int, dst: int, tag: int, *, size: int = MIB, deps: Sequence[int] = ()) -> Node:
    return _message("RECV", number, src, dst, tag, size, deps)


def _message(kind: str, number: int, src: int, dst: int, tag: int, size: int, deps: Sequence[int]) -> Node:
    name = f"{kind.lower()}_{src}_{dst}_t{tag}"
    return node(
        number, f"COMM_{kind}", name=name, deps=deps, comm_src=src, comm_dst=dst, comm_size=size, comm_tag=tag
    )


FOLDERS = (
    *(f"chakra/p2p/{name}" for name in _messages()),
    *(f"chakra/microbenchmarks/{kind}/{num}npus_1MB" for kind, num in product(KINDS, (4, 8, 16))),
)
"""Each trace's folder."""
