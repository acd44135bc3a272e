"""What the hosts of a topology have, as collective algorithms ask for it."""

from __future__ import annotations

from dataclasses import dataclass

from cosim.topology.fabrics import FabricCosts


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
