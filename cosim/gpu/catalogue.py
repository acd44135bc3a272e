"""The catalogue of GPUs: one file each in ``data/``, of the form that `cosim calibrate` and `cosim fit`
write.

A file has the data sheet's numbers with their source, the efficiency's parameters, which of those were fitted
and to what, and how far off iteration times were. ``from cosim.gpu.catalogue import A100_80GB`` reads
``a100-80gb.yaml``; so do the entry points of the group ``cosim.gpus``. A new GPU is a new file and a line
there.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cosim.errors import WorkloadError
from cosim.files import located_yaml
from cosim.gpu.gpus import Gpu

DATA = Path(__file__).parent / "data"


def names() -> list[str]:
    """Every GPU of the catalogue."""
    return sorted(path.stem for path in DATA.glob("*.yaml"))


@cache
def read(name: str) -> Gpu:
    """A GPU of the catalogue.

    Raises
    ------
    ValueError
        There is none of that name: says which there are.
    """
    if name not in names():
        raise ValueError(f"there is no GPU {name!r} in the catalogue; there are: {', '.join(names())}")
    table = located_yaml.read(DATA / f"{name}.yaml", WorkloadError)
    return located_yaml.as_model(table, Gpu, WorkloadError, "gpu")


def __getattr__(name: str) -> Gpu:
    """``A100_80GB`` is the GPU of ``a100-80gb.yaml``."""
    if name.startswith("_") or name != name.upper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return read(name.lower().replace("_", "-"))
    except ValueError as error:
        raise AttributeError(str(error)) from error
