"""What the hosts of a topology have, as collective algorithms ask for it.

Fabrics between hosts have names: what NCCL's messages cost on them beside links and switches.

A fabric is three numbers. ``rate``: data in a byte that a NIC could carry, headers and what large messages
lose counted. ``step``: latency of a step between hosts beyond NCCL's own figures, which are InfiniBand's
(``hwLatencies`` of ``tuning.cc``). ``declared``: what the network's plug-in tells NCCL its latency is, by
which NCCL chooses algorithm and protocol.

- ``infiniband-ndr``, also for XDR, which nobody measured: the framing's rate; nothing fitted.
- ``infiniband-hdr``: ``rate`` fitted to 8 points of A100s with 4 NICs.
- ``roce``: ``rate`` fitted to two points of one cluster of 2024: paths that flows share are in it.
- ``efa-v2`` (AWS p5), ``efa-v3`` (p5en), ``efa-v4`` (p6): steps and declared latencies are AWS's own
  (aws-ofi-nccl, Apache-2.0: ``net_lat`` of ``nccl_ofi_model.cpp``, ``latency`` of ``platform-aws.cpp``).
  ``rate`` of v3 fitted to three points, taken for v4, which nobody measured; of v2 InfiniBand's.

Points: 48 of ``tests/data/measured/internode_nccl.csv``, ``python -m tests.lab.validation.internode``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from cosim.spec import Spec, TimePs

FabricName = Literal["infiniband-ndr", "infiniband-hdr", "roce", "efa-v2", "efa-v3", "efa-v4"]


class FabricCosts(Spec):
    """What NCCL's messages between hosts cost beside links and switches."""

    rate: float = Field(0.97, ge=0.1, le=1, description="data in a byte that a NIC could carry")
    step: TimePs = Field(0, ge=0, description="of a step between hosts, beyond NCCL's figure for InfiniBand")
    declared: TimePs = Field(0, ge=0, description="latency that the plug-in tells NCCL, which chooses by it")


FABRICS: dict[FabricName, FabricCosts] = {
    "infiniband-ndr": FabricCosts(),
    "infiniband-hdr": FabricCosts(rate=0.92),
    "roce": FabricCosts(rate=0.83),
    "efa-v2": FabricCosts.model_validate({"step": "20us", "declared": "75us"}),
    "efa-v3": FabricCosts.model_validate({"rate": 0.92, "step": "18us", "declared": "35us"}),
    "efa-v4": FabricCosts.model_validate({"rate": 0.92, "step": "18us", "declared": "35us"}),
}


def _by_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value not in FABRICS:
        names = ", ".join(get_args(FabricName))
        raise ValueError(
            f"no fabric is called {value}; give {names}, or its numbers: {{rate: 0.9, step: 10us}}"
        )
    return FABRICS[value]


NamedFabric = Annotated[FabricCosts, BeforeValidator(_by_name)]
"""Field type: a fabric's name, or its numbers."""


@dataclass(frozen=True, slots=True)
class HostShape:
    """GPUs, NICs, bits per second of a GPU's scale-up link and of a NIC.

    Attributes
    ----------
    gpus
        Of a host.
    nics
        Of a host.
    link_rate_bps
        Of a GPU's scale-up links by their data sheet, all together; 0: unknown.
    nic_rate_bps
        Of a NIC.
    rails
        The NICs lead to several switches.
    link_latency_ps
        From a GPU to the nearest other over scale-up links.
    gpu_nics
        NICs of each GPU.
    mesh
        Each GPU of a host has a link of its own to each other one (XGMI), and there is no switch.
    partial
        Each GPU of the one host has links to some of the others, and there is no switch.
    reckoned
        The links have the rates that NCCL reckons with, which are below a data sheet's.
    linked
        GPUs of a host have scale-up links; else they reach each other over PCI.
    named_only
        Collectives that a scenario doesn't name stay what they are elsewhere.
    fabric
        What messages between hosts cost beside wires; None: nobody said what fabric it is.
    """

    gpus: int
    nics: int
    link_rate_bps: float
    nic_rate_bps: float
    rails: bool = False
    link_latency_ps: int = 0
    gpu_nics: int = 1
    mesh: bool = False
    partial: bool = False
    reckoned: bool = False
    linked: bool = True
    named_only: bool = False
    fabric: FabricCosts | None = None
