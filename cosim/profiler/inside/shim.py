"""Fake ``cuda`` for a torch without CUDA: builds ``shim.cpp`` once per torch into the user's cache, and
loads it.

Nothing here imports torch: the shim has to be loaded before torch is, because ATen looks its hooks up once.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from cosim.errors import InputError
from cosim.files.cache import cache_folder, making

_SOURCE = Path(__file__).with_name("shim.cpp")


class Shim:
    """The loaded shim: streams, events and the current device, as ATen sees them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.cosim_stream.restype = ctypes.c_int64
        library.cosim_notes.restype = ctypes.c_int64
        self._room = 256
        self._buffer = (ctypes.c_int64 * (3 * self._room))()
        self.stream = library.cosim_stream
        self.device = library.cosim_device
        self.set_device = library.cosim_set_device

    def open(self, devices: int, own: int) -> None:
        """Say how many devices a node has and which one is the rank's."""
        self._library.cosim_open(devices, own)

    def notes(self) -> list[tuple[int, int, int]]:
        """(kind, event, stream) of what was recorded, waited for or synchronised since the last call."""
        found: list[tuple[int, int, int]] = []
        while count := self._library.cosim_notes(self._buffer, self._room):
            flat = self._buffer[: 3 * count]
            found.extend(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
        return found


def torch_folder() -> Path | None:
    """Where torch is installed, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def compiler() -> str | None:
    """A C++ compiler: ``CXX``, else c++, g++ or clang++."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            return name
    return None


def load() -> tuple[Shim | None, str]:
    """The shim, built if it has to be; or None and why not."""
    if os.environ.get("COSIM_PROFILE_SHIM") == "off":
        return None, "switched off (COSIM_PROFILE_SHIM=off)"
    torch = torch_folder()
    if torch is None:
        return None, "torch is not installed"
    try:
        library = _built(torch)
    except InputError as error:
        return None, error.message
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        return None, f"it could not be built: {said.strip().splitlines()[-1] if said.strip() else error}"
    # Its symbols are torch's: those come first, as `import torch` will bring them.
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(torch / "lib" / name), mode=ctypes.RTLD_GLOBAL)
    return Shim(ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)), ""


def _built(torch: Path) -> Path:
    """The shared library for this torch, in the user's cache."""
    source = _SOURCE.read_bytes()
    version = importlib.metadata.version("torch")
    key = hashlib.sha256(source + f"{version} {torch}".encode()).hexdigest()[:16]
    cache = cache_folder("profiler")
    library = cache / f"fake-cuda-{key}.so"
    if library.exists():
        return library
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C++ compiler (c++, g++, clang++)")
    with making(cache / "lock", "the stand-in for CUDA's library"):
        if library.exists():
            return library
        handle, name = tempfile.mkstemp(suffix=".so", dir=cache)
        os.close(handle)
        command = [found, "-std=c++20", "-O1", "-shared", "-fPIC", "-DNDEBUG"]
        include = torch / "include"
        command += [f"-I{include}", f"-I{include / 'torch/csrc/api/include'}", str(_SOURCE), "-o", name]
        command += [f"-L{torch / 'lib'}", "-lc10", "-ltorch_cpu"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        Path(name).replace(library)
    return library
