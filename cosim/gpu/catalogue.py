"""The catalogue of GPUs: one file each in ``data/``, of the form that `cosim calibrate` and `cosim fit`
write.

A file has the data sheet's numbers with their source, the efficiency's parameters, which of those were fitted
and to what, the host that its measured jobs ran on, and how far off iteration times were. ``from
cosim.gpu.catalogue import A100_80GB`` reads ``a100-80gb.yaml``; so do the entry points of the group
``cosim.gpus``. A new GPU is a new file and a line there.
"""

from __future__ import annotations

from pathlib import Path

from cosim.files.catalogue import Catalogue
from cosim.gpu.gpus import Gpu

_FILES = Catalogue(Path(__file__).parent / "data", Gpu, "gpu")
names, read = _FILES.names, _FILES.read


def __getattr__(name: str) -> Gpu:
    """``A100_80GB`` is the GPU of ``a100-80gb.yaml``."""
    return _FILES.constant(name)
