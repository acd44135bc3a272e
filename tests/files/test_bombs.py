"""Small files that unpack, nest or count to far more than they hold: a line each, and bounded memory.

They are read in one child that may take half a gigabyte more than it had.
"""

from __future__ import annotations

import gzip
import io
import json
import resource
import subprocess
import sys
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from cosim.captures.counters import read_npz
from cosim.captures.read import read_capture
from cosim.context import Context
from cosim.errors import CosimError, InputError
from cosim.files.located_xml import read_xml
from cosim.files.located_yaml import read as read_yaml
from cosim.formats.pytorch.read import PyTorchWorkload
from cosim.results.stored_run import _read_npz
from cosim.synthesis.model import read_model
from cosim.synthesis.sources import read_sources
from tests.inputs import ROOT
from tests.lab.fuzz.importers import READERS, written

ROOM_BYTES = 512 << 20
LARGE = 18 << 20  # above what is read of any file
DEEP = 100_000
FAR = "unpacks to more than 200 times its size"


def _tar(mode: Literal["w:gz", "w:bz2", "w:xz"]) -> bytes:
    made = io.BytesIO()
    member = tarfile.TarInfo("rank0.json")
    member.size = LARGE
    with tarfile.open(None, mode, made) as archive:
        archive.addfile(member, io.BytesIO(b" " * LARGE))
    return made.getvalue()


def _gzip() -> bytes:
    return gzip.compress(b'{"a": "' + b"x" * LARGE)


def _tar_of_gz() -> bytes:
    made, inside = io.BytesIO(), _gzip()
    member = tarfile.TarInfo("rank0.json.gz")
    member.size = len(inside)
    with tarfile.open(fileobj=made, mode="w") as archive:
        archive.addfile(member, io.BytesIO(inside))
    return made.getvalue()


def _npz(shape: str, size: int) -> bytes:
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + bytes(size))
    return made.getvalue()


def _kineto(path: Path) -> object:
    return PyTorchWorkload(kineto=str(path), collectives="measured").build(Context(path.parent))


def _source(path: Path) -> object:
    return read_sources([path], world_size=2, gpu=None, dependencies="all")


def _xml(path: Path) -> object:
    return read_xml(path, InputError)


def _columns(path: Path) -> object:
    return _read_npz(path, None)


def _goal(path: Path) -> object:
    return READERS["goal"](path.parent)


def _htsim(path: Path) -> object:
    return READERS["htsim"](path.parent)


def _flows(path: Path) -> object:
    return READERS["flow-list"](path.parent)


def _chakra(path: Path) -> object:
    return READERS["chakra-messages"](path.parent)


_LAUGHS = '<!DOCTYPE a [<!ENTITY l0 "ha">' + "".join(
    f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9)
)
_ALIASES = "a0: &a0 [1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 13)
)

BOMBS: dict[str, tuple[str, Callable[[], bytes], Callable[[Path], Any], str]] = {
    "gzip": ("rank0.json.gz", _gzip, _kineto, FAR),
    "gzip, deep": ("rank0.json.gz", lambda: gzip.compress(b'{"a": ' + b"[" * LARGE), _kineto, "recursion"),
    "gzip, a source": ("rank0.json.gz", _gzip, _source, "neither Chakra"),
    "gzip in tar": ("traces.tar", _tar_of_gz, _kineto, FAR),
    "tar.gz": ("traces.tar.gz", lambda: _tar("w:gz"), _kineto, FAR),
    "tar.bz2": ("traces.tar.bz2", lambda: _tar("w:bz2"), _kineto, FAR),
    "tar.xz": ("traces.tar.xz", lambda: _tar("w:xz"), _kineto, FAR),
    "tar.xz, a source": ("traces.tar.xz", lambda: _tar("w:xz"), _source, FAR),
    "npz": ("c.npz", lambda: _npz(f"(3, {LARGE // 24})", LARGE), read_npz, FAR),
    "npz, many rows": ("c.npz", lambda: _npz("(3, 1000000000000)", 24), read_npz, "broken"),
    "a run, many rows": ("columns.npz", lambda: _npz("(1000000000000,)", 8), _columns, "broken"),
    "JSON, deep": ("model.json", lambda: b"[" * DEEP, read_model, "JSON"),
    "YAML, deep": ("s.yaml", lambda: b"[" * DEEP, read_yaml, "nested more than 100 deep"),
    "YAML, aliases": ("s.yaml", lambda: _ALIASES.encode(), read_yaml, "aliases of aliases"),
    "XML, entities": ("t.xml", lambda: f"{_LAUGHS}]><a>&l9;</a>".encode(), _xml, "declares an entity"),
    "XML, deep": ("t.xml", lambda: b"<a>" * DEEP, _xml, "nested more than 64 deep"),
    "GOAL, many ranks": ("schedule.goal", lambda: b"num_ranks 999999999999\n", _goal, "num_ranks"),
    "htsim, many nodes": ("traffic.cm", lambda: b"Nodes 99999999999\nConnections 0\n", _htsim, "Nodes is"),
    "flow list, many": ("flow.txt", lambda: b"99999999999\n0 1 3 100 0\n", _flows, "ends after 1 of"),
    "Chakra, a long one": ("trace.0.et", lambda: b"\xff\xff\xff\xff\x7f", _chakra, "the file ends"),
    "pcap, a long packet": (
        "a.pcap",
        lambda: bytes.fromhex("d4c3b2a1020004000000000000000000ffffffff01000000") + b"\xff" * 16,
        read_capture,
        "captured bytes",
    ),
}  # fmt: skip
"""The file's name, what is in it, its reader, and words of the error."""


def main(place: str) -> None:
    """Read all, and say how each ended."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    made = {name: make() for name, (_, make, _, _) in BOMBS.items()}
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, resource.RLIM_INFINITY))
    ended = {}
    for number, (name, (file, _, read, _)) in enumerate(BOMBS.items()):
        folder = Path(place) / str(number)
        folder.mkdir()
        (folder / file).write_bytes(made[name])
        try:
            ended[name] = f"read: {str(read(folder / file))[:99]}"
        except CosimError as error:
            ended[name] = str(error)
        except BaseException as error:
            ended[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(ended))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("bombs")
    command = [sys.executable, "-W", "ignore", "-m", "tests.files.test_bombs", str(place)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_a_line(name: str, ended: dict[str, str]) -> None:
    file, _, _, words = BOMBS[name]
    assert file in ended[name].splitlines()[0]
    assert words in ended[name].splitlines()[0]
    assert not ended[name].startswith(("read: ", "MemoryError"))


def test_equal_rows_of_parquet_are_refused_at_the_second(tmp_path: Path) -> None:
    """In this process: Arrow's threads die where memory is limited."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, content in written("parquet").items():
        (tmp_path / name).write_bytes(content)
    file = tmp_path / "operations.parquet"
    pq.write_table(pq.read_table(file).take(pa.array(np.zeros(300_000, np.int32))), file)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="row 2: op is 0"):
            READERS["parquet"](tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 128 << 20  # a list of all rows takes 366 MiB


if __name__ == "__main__":
    main(sys.argv[1])
