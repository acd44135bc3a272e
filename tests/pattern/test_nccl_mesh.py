"""Rings over hosts whose GPUs have links to some of the others: against RCCL's own orders, and closed forms.

Links and orders are those of RCCL's models of known hosts (ROCm/rccl, ``graph/rome_models.cc``, BSD
3-clause): 52 is eight GCDs of MI250X on a cube, 67 the same by 1, 2 and 4 links, 45 two islands of four GPUs.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cosim.errors import CosimError
from cosim.experiment.run import run
from cosim.pattern.group_links import GroupLinks
from cosim.pattern.nccl_mesh import rings_over

SIZE = 1 << 28
CUBE = {(0, 1): 1, (0, 2): 1, (0, 6): 1, (1, 3): 1, (1, 5): 1, (2, 3): 1, (2, 4): 1, (3, 7): 1, (4, 5): 1,
        (4, 6): 1, (5, 7): 1, (6, 7): 1}  # fmt: skip
CUBE_ORDERS = ["0 1 3 2 4 5 7 6", "6 7 5 4 2 3 1 0", "0 1 5 4 6 7 3 2", "2 3 7 6 4 5 1 0"]
ISLANDS = {(base + a, base + b): 1 for base in (0, 4) for a in range(4) for b in range(a + 1, 4)}
ISLAND_ORDERS = ["0 1 2 3 4 5 6 7", "0 2 5 7 4 6 1 3", "0 3 1 6 4 7 5 2", "0 7 6 5 4 3 2 1"]
THICK = {(0, 1): 4, (0, 2): 1, (0, 6): 2, (1, 3): 1, (1, 5): 1, (2, 3): 4, (2, 4): 2, (3, 7): 1, (4, 5): 4,
         (4, 6): 1, (5, 7): 1, (6, 7): 4}  # fmt: skip
"""A cube whose GPUs have two dies each, with four links between them; by hand: min degree 5, so 4 ways."""

DGX_1V = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1,
          (3, 7): 1, (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2}  # fmt: skip
"""NVIDIA's hybrid cube mesh of eight V100s, six NVLinks each, of which NCCL makes six rings."""


def host(links: dict[tuple[int, int], int], gcn: str = "910", numas: int = 1) -> str:
    """A topology of RCCL: GPU k on CPU k * numas / 8."""
    num = 1 + max(max(pair) for pair in links)
    bus = [f"0000:{k + 1:02x}:00.0" for k in range(num)]
    cpus = ""
    for numa in range(numas):
        gpus = ""
        for rank in range(numa * num // numas, (numa + 1) * num // numas):
            peers = {b if a == rank else a: count for (a, b), count in links.items() if rank in (a, b)}
            lines = "".join(
                f'<xgmi target="{bus[peer]}" count="{count}" tclass="0x120000"/>'
                for peer, count in peers.items()
            )
            gpus += (
                f'<pci busid="{bus[rank]}" class="0x120000" link_speed="16.0 GT/s PCIe" link_width="16">\n'
                f'<gpu dev="{rank}" sm="104" gcn="{gcn}" arch="38911" rank="{rank}" gdr="1">{lines}</gpu>'
                "</pci>\n"
            )
        cpus += f'<cpu numaid="{numa}" arch="x86_64" vendor="AuthenticAMD">\n{gpus}</cpu>'
    return f'<system version="2">\n{cpus}</system>\n'


def took_ms(folder: Path, text: str, all_reduce: Any, ranks: int = 8) -> float:
    (folder / "host.xml").write_text(text)
    scenario = {
        "topology": {"kind": "nccl", "file": str(folder / "host.xml")},
        "network": "fair_share",
        "collectives": {"all_reduce": all_reduce},
        "jobs": [
            {"workload": {"kind": "collective", "collective": "all_reduce", "size": SIZE, "ranks": ranks}}
        ],
    }
    return run(scenario).records.end_ps / 1e9


def orders(lines: list[str]) -> dict[str, Any]:
    return {"algorithm": "nccl", "rings": [[int(rank) for rank in line.split()] for line in lines]}


def ring_ms(gbytes_per_s: float, ranks: int = 8) -> float:
    return 2 * (ranks - 1) / ranks * SIZE / (gbytes_per_s * 1e9) * 1e3


def test_found_rings_are_as_fast_as_rccls_own_orders(tmp_path: Path) -> None:
    cube = took_ms(tmp_path, host(CUBE), "nccl")
    assert cube == pytest.approx(took_ms(tmp_path, host(CUBE), orders(CUBE_ORDERS)), rel=0.01)
    assert cube == pytest.approx(ring_ms(2 * 36), rel=0.03)  # of three links one ring, both ways, takes two
    islands = host(ISLANDS, "908", numas=8)
    found = took_ms(tmp_path, islands, "nccl")
    assert found == pytest.approx(took_ms(tmp_path, islands, orders(ISLAND_ORDERS)), rel=0.01)
    assert found == pytest.approx(
        ring_ms(4 * 16), rel=0.03
    )  # two rings, both ways, over a CPU's 16 GB/s each


def test_rings_in_rank_order_are_slower(tmp_path: Path) -> None:
    assert took_ms(tmp_path, host(CUBE), "ring") == pytest.approx(ring_ms(24), rel=0.01)  # 1 to 2: PCI
    assert took_ms(tmp_path, host(THICK), "nccl") == pytest.approx(ring_ms(4 * 36), rel=0.04)


def test_a_group_of_a_mesh_has_all_of_its_links(tmp_path: Path) -> None:
    """Four of an island have three links each, which all carry a part."""
    took = took_ms(tmp_path, host(ISLANDS, "908", numas=2), "nccl", ranks=4)
    assert took == pytest.approx(ring_ms(3 * 24, 4), rel=0.04)


def test_a_list_of_one_is_that_one(tmp_path: Path) -> None:
    assert took_ms(tmp_path, host(CUBE), ["nccl"]) == took_ms(tmp_path, host(CUBE), "nccl")


@pytest.mark.parametrize(
    ("links", "rings", "leaving"), [(CUBE, 2, 0), (THICK, 4, 0), (DGX_1V, 6, 0), (ISLANDS, 4, 2)]
)
def test_no_link_is_in_two_rings(links: dict[tuple[int, int], int], rings: int, leaving: int) -> None:
    direct = tuple(
        (src, dst, 36e9 * count, 0) for (a, b), count in links.items() for src, dst in ((a, b), (b, a))
    )
    found = rings_over(GroupLinks(8, direct, ()))
    steps = [list(zip(order, [*order[1:], order[0]], strict=True)) for order in found]
    there = {pair: count for (a, b), count in links.items() for pair in ((a, b), (b, a))}
    assert len(found) == rings
    assert all(sorted(order) == list(range(8)) for order in found)
    assert all(sum(pair not in there for pair in each) == leaving for each in steps)
    used = Counter(pair for each in steps for pair in each)
    assert all(count <= there.get(pair, 1) for pair, count in used.items())


@pytest.mark.parametrize(
    ("rings", "says"),
    [
        ([[0, 1, 2, 3, 4, 5, 6, 6]], r"\[0, 1, 2, 3, 4, 5, 6, 6\] should have each rank from 0 to 7 once"),
        ([[0, 1], [1, 0, 2]], r"\[1, 0, 2\] should have each rank from 0 to 1 once"),
        ([[]], r"\[\] should have each rank from 0 to 1 once"),
        ([[0, 1, 2, 3]], r"rings are of 4 ranks, and this group has 8"),
        ("links", "by_links"),
    ],
)
def test_wrong_rings_are_refused(tmp_path: Path, rings: Any, says: str) -> None:
    with pytest.raises(CosimError, match=says):
        took_ms(tmp_path, host(CUBE), {"algorithm": "nccl", "rings": rings})
