"""FSDP2 of parameters that are plain tensors with ``spmd_types``' annotations: torchtitan 0.3's default.

torch 2.13 takes only DTensors on a mesh of all axes; torchtitan asks for the torch after it. Here such a
parameter is sharded as the DTensor that its annotations describe (PartitionSpec, else S(dim) of each axis),
gathered as a plain tensor, and its gradient summed over the other axes on which it is replicated (R), a
parameter at a time, as torch 2.13 does it for DTensors.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import torch
import torch.distributed._functional_collectives as collectives
from torch.distributed.tensor import DTensor, Replicate, Shard

NOTE = (
    "FSDP2 shards plain parameters with spmd_types on a mesh of all axes, as the torch that torchtitan asks"
    " for is taken to do it; torch 2.13 by itself refuses them"
)


def install(assume: Any) -> None:
    """Let FSDP2 take annotated parameters."""
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam

    given_spec, given_gradient = FSDPParam._init_sharding_spec, FSDPParam._get_grad_inner_tensor

    def sharding_spec(self: Any, param: Any, placement: Any, dim: int) -> Any:
        mesh = self.mesh_info.spmd_mesh if self.mesh_info.is_spmd_mesh else None
        if mesh is None or self.is_dtensor or "spmd_types" not in sys.modules:
            return given_spec(self, param, placement, dim)
        assume(NOTE)
        names = mesh.mesh_dim_names
        places, sums = _layout(param, mesh)
        whole = DTensor.from_local(param.detach(), mesh, places, run_check=False)
        self.is_dtensor = True
        local = given_spec(self, whole, placement, dim)
        self.is_dtensor, self._unsharded_dtensor_spec = False, None
        own = {*self.mesh_info.dp_mesh_dims.shard_names, *self.mesh_info.dp_mesh_dims.replicate_names}
        self._cosim_sums = [mesh.get_group(name) for name in names if name in sums and name not in own]
        return local

    def gradient(self: Any, grad: Any) -> Any:
        for group in getattr(self, "_cosim_sums", ()):
            grad = collectives.wait_tensor(collectives.all_reduce(grad, "sum", group))
        return given_gradient(self, grad)

    FSDPParam._init_sharding_spec = sharding_spec  # type: ignore[method-assign]
    FSDPParam._get_grad_inner_tensor = gradient  # type: ignore[method-assign]


def _layout(param: torch.Tensor, mesh: Any) -> tuple[list[Any], set[str]]:
    """Where a parameter is on each axis of a mesh, and the axes over which its gradient is to be summed."""
    spmd, runtime = import_module("spmd_types"), import_module("spmd_types.runtime")
    normalize_axis = import_module("spmd_types.types").normalize_axis

    axes = {
        name: normalize_axis(mesh.get_group(name)) for name in mesh.mesh_dim_names if mesh[name].size() > 1
    }
    types, spec = runtime.get_local_type(param), runtime.get_partition_spec(param) or ()
    places: list[Any] = []
    sums = set()
    for name in mesh.mesh_dim_names:
        axis = axes.get(name)
        kind = types.get(axis)
        dims = [
            dim
            for dim, entry in enumerate(spec)
            if axis is not None
            and axis
            in [normalize_axis(e) for e in (entry if isinstance(entry, tuple) else (entry,)) if e is not None]
        ]
        if isinstance(kind, spmd.Shard):
            dims = [kind.dim % param.dim()]
        if kind is spmd.R:
            sums.add(name)
        places.append(Shard(dims[0]) if dims else Replicate())
    return places, sums
