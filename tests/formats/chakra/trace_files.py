"""Writes small Chakra traces for tests."""

from collections.abc import Sequence
from pathlib import Path

from cosim.formats.chakra.et_def_pb2 import CollectiveCommType, GlobalMetadata, Node
from cosim.formats.chakra.file import framed


def node(
    number: int,
    kind: str,
    *,
    deps: Sequence[int] = (),
    ctrl: Sequence[int] = (),
    us: int = 0,
    name: str = "",
    values: str = "",
    flags: Sequence[bool] | None = None,
    **attributes: int | str | bool,
) -> Node:
    made = Node(
        id=number,
        name=name or f"{kind.lower()}_{number}",
        type=f"{kind}_NODE",
        data_deps=deps,
        ctrl_deps=ctrl,
        duration_micros=us,
    )
    for key, value in attributes.items():
        attribute = made.attr.add()
        attribute.name = key
        if isinstance(value, bool):
            attribute.bool_val = value
        elif isinstance(value, int):
            attribute.int64_val = value
        else:
            attribute.string_val = value
    if flags is not None:
        attribute = made.attr.add()
        attribute.name = "involved_dim"
        attribute.bool_list.values.extend(flags)
    if values:
        made.inputs.values = values
    return made


def coll(number: int, kind: str = "ALL_REDUCE", size: int = 1000, **rest: object) -> Node:
    comm_type = CollectiveCommType.Value(kind)
    return node(number, "COMM_COLL", comm_type=comm_type, comm_size=size, **rest)  # type: ignore[arg-type]


def send(number: int, dst: int, size: int = 1000, tag: int = 0, **rest: object) -> Node:
    return node(number, "COMM_SEND", comm_dst=dst, comm_size=size, comm_tag=tag, **rest)  # type: ignore[arg-type]


def recv(number: int, src: int, size: int = 1000, tag: int = 0, **rest: object) -> Node:
    return node(number, "COMM_RECV", comm_src=src, comm_size=size, comm_tag=tag, **rest)  # type: ignore[arg-type]


def trace(nodes: Sequence[Node]) -> bytes:
    return b"".join([framed(GlobalMetadata(version="0.0.4")), *(framed(one) for one in nodes)])


def write_ranks(folder: Path, *ranks: Sequence[Node], prefix: str = "job") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for rank, nodes in enumerate(ranks):
        (folder / f"{prefix}.{rank}.et").write_bytes(trace(nodes))
    return folder
