"""What ``torch.cuda`` says of a GPU that isn't there: its name, properties, memory; and what does nothing."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch

MEMORY = 80 * 2**30
"""Bytes, where the catalogue's GPU has none."""
# What torch calls the GPUs of the catalogue, and their compute capability.
_KNOWN: dict[str, tuple[str, tuple[int, int]]] = {
    "v100-sxm2": ("Tesla V100-SXM2-32GB", (7, 0)),
    "a100-40gb": ("NVIDIA A100-SXM4-40GB", (8, 0)),
    "a100-80gb": ("NVIDIA A100-SXM4-80GB", (8, 0)),
    "h100-sxm": ("NVIDIA H100 80GB HBM3", (9, 0)),
    "l40s": ("NVIDIA L40S", (8, 9)),
    "rtx-4090": ("NVIDIA GeForce RTX 4090", (8, 9)),
    "rtx-pro-6000": ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", (12, 0)),
    "h20": ("NVIDIA H20", (9, 0)),
    "h100-pcie": ("NVIDIA H100 PCIe", (9, 0)),
    "h200-sxm": ("NVIDIA H200", (9, 0)),
    "h800-sxm": ("NVIDIA H800", (9, 0)),
    "b200": ("NVIDIA B200", (10, 0)),
    "gb200": ("NVIDIA GB200", (10, 0)),
    "b300": ("NVIDIA B300", (10, 3)),
    "gb300": ("NVIDIA GB300", (10, 3)),
    "mi300x": ("AMD Instinct MI300X", (9, 4)),
    "mi325x": ("AMD Instinct MI325X", (9, 4)),
    "mi355x": ("AMD Instinct MI355X", (9, 5)),
}
NOTHING = (
    "init", "_lazy_init", "_lazy_call", "_exchange_device", "_maybe_exchange_device", "set_rng_state",
    "set_rng_state_all", "manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache", "ipc_collect",
    "reset_peak_memory_stats", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "set_per_process_memory_fraction",
)  # fmt: skip
"""Functions of ``torch.cuda`` that do nothing here."""
ZERO = (
    "initial_seed", "utilization", "temperature", "power_draw", "clock_rate", "memory_allocated",
    "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached", "max_memory_cached",
    "memory_usage",
)  # fmt: skip
"""Functions that say 0."""


def about_gpu(gpu: dict[str, Any], memory: int) -> dict[str, Any]:
    """What ``torch.cuda`` says of the GPU's properties and memory (bytes); ``gpu``: its key, name and
    multiprocessors.
    """
    name, capability = _KNOWN.get(gpu["key"], (gpu["name"], (9, 0)))
    properties = SimpleNamespace(
        name=name,
        major=capability[0],
        minor=capability[1],
        total_memory=memory,
        multi_processor_count=gpu["multiprocessors"],
        is_integrated=0,
        is_multi_gpu_board=0,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472,
        L2_cache_size=50 * 2**20,
        gcnArchName="",
        uuid="",
        pci_bus_id=0,
    )
    return {
        "get_device_properties": lambda *_, **__: properties,
        "get_device_capability": lambda *_, **__: capability,
        "get_device_name": lambda *_, **__: name,
        "get_arch_list": lambda: [f"sm_{capability[0]}{capability[1]}"],
        "is_bf16_supported": lambda *_, **__: capability >= (8, 0),
        "is_tf32_supported": lambda *_, **__: capability >= (8, 0),
        "mem_get_info": lambda *_, **__: (memory, memory),
        "get_allocator_backend": lambda: "native",
        "memory_stats": lambda *_, **__: defaultdict(int),
        "memory_snapshot": lambda *_, **__: [],
        "memory_summary": lambda *_, **__: "",
        "get_rng_state": lambda *_, **__: torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda *_, **__: [torch.zeros(16, dtype=torch.uint8)],
    }
