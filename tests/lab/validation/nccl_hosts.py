"""NCCL's collectives between hosts of eight H100s: what NICs per GPU, rails and PXN do.

``python -m tests.lab.validation.nccl_hosts``: bus bandwidth, GB/s, of 1 GiB over 2, 4 and 8 hosts on a
rail-optimised leaf-spine of 400 Gb/s, and over 8 with spines at a quarter, in the full path; beside it what
the busiest NIC or NVLink allows. No measured table of several hosts is given.
"""

from __future__ import annotations

from cosim.experiment.run import run
from cosim.experiment.scenario import Scenario
from cosim.pattern.nccl import Nccl
from cosim.pattern.nccl_host import SYSTEMS

GPUS, SIZE, NIC = 8, 1 << 30, 50e9
HOSTS = (2, 4, 8)
LAW = SYSTEMS["h100"]
LINK = LAW.link_rate * 1e6
ROWS: tuple[tuple[str, str, int, dict[str, object]], ...] = (
    ("as NCCL chooses", "all_reduce", 8, {}),
    ("a ring", "all_reduce", 8, {"algorithms": "ring"}),
    ("a ring, hosts alike", "all_reduce", 8, {"algorithms": "ring", "alternate": False}),
    ("an NVLS tree", "all_reduce", 8, {"algorithms": "nvls_tree"}),
    ("a ring, 4 NICs", "all_reduce", 4, {"algorithms": "ring"}),
    ("a ring, 2 NICs", "all_reduce", 2, {"algorithms": "ring"}),
    ("as NCCL chooses", "all_gather", 8, {}),
    ("4 NICs", "all_gather", 4, {}),
    ("as NCCL chooses", "reduce_scatter", 8, {}),
    ("PXN", "all_to_all", 8, {}),
    ("no PXN", "all_to_all", 8, {"pxn": False}),
    ("PXN, 4 NICs", "all_to_all", 4, {}),
)


def bus_gb_s(
    collective: str, hosts: int, nics: int, how: dict[str, object], oversubscription: float = 1
) -> float:
    """Bus bandwidth as nccl-tests define it."""
    ranks = GPUS * hosts
    scenario = {
        "topology": {
            "kind": "leaf_spine",
            "leaves": nics,
            "spines": hosts,
            "endpoints_per_leaf": ranks // nics,
            "latency": "500ns",
            "oversubscription": oversubscription,
            "routing": "dmodk",
            "hosts": {
                "gpus": GPUS,
                "nvlink_rate": "450GB/s",
                "nvlink_latency": "300ns",
                "nics": nics,
                "nic_rate": "400Gbps",
                "rails": True,
            },
        },
        "network": "fair_share",
        "collectives": {collective: {"algorithm": "nccl", **how}},
        "jobs": [
            {
                "workload": {
                    "kind": "collective",
                    "collective": collective,
                    "size": SIZE // ranks if collective == "all_gather" else SIZE,
                    "ranks": ranks,
                }
            }
        ],
        "fold": "never",
    }
    seconds = run(Scenario.model_validate(scenario)).records.end_ps / 1e12
    factor = (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks
    return factor * SIZE / seconds / 1e9


def bound_gb_s(collective: str, hosts: int, nics: int, how: dict[str, object]) -> float:
    """What the busiest NIC allows, or NVLinks of an NVLS tree, were latencies nothing."""
    ranks, nic = GPUS * hosts, NIC * Nccl().network_efficiency
    if collective == "all_to_all":
        return nics * nic * (ranks - 1) / (ranks - GPUS) / GPUS / 1e9
    ring = nics * nic
    if how.get("algorithms") == "ring" or collective != "all_reduce":
        return ring / 1e9
    links = LINK * LAW.nvls_efficiency / (1 + 1 / GPUS)
    tree = 2 * (ranks - 1) / ranks * min(links, nics * nic / (1 if hosts == 2 else 2))
    return (tree if "algorithms" in how else max(ring, tree)) / 1e9


def main() -> None:
    """Print the table."""
    heads = " | ".join(f"{hosts} hosts" for hosts in HOSTS)
    print(f"| collective | {heads} | spines at a quarter | bound |\n|{'---|' * (len(HOSTS) + 3)}")
    for name, collective, nics, how in ROWS:
        cells = [f"{bus_gb_s(collective, hosts, nics, how):.0f}" for hosts in HOSTS]
        cells.append(f"{bus_gb_s(collective, HOSTS[-1], nics, how, 4):.0f}")
        cells.append(", ".join(f"{bound_gb_s(collective, hosts, nics, how):.0f}" for hosts in HOSTS))
        print(f"| {collective}: {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
