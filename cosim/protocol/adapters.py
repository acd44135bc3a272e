"""Adapters that come with cosim: servers of the protocol in other languages, built where they are used.

Their sources are part of a checkout and of an installed package. A build lives in the user's cache folder,
under a hash of the sources, so that another version of cosim builds its own and both stay.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cosim.errors import LaunchError
from cosim.files.cache import cache_folder, making
from cosim.protocol.installs import ASTRA_SIM, Install
from cosim.registry import nearest

_LOG_LINES = 15  # of a compiler, from its first error on
_HEADERS = (Path("/usr/include"), Path("/usr/local/include"))
_TOOLS = {
    "cmake": "cmake",
    "c++": "g++",
    "make": "make",
    "pkg-config": "pkg-config",
    "protoc": "protobuf-compiler",
    "grpc_cpp_plugin": "protobuf-compiler-grpc",
}
_GRPC: dict[tuple[str, ...], str] = {("grpcpp/grpcpp.h",): "libgrpc++-dev"}


@dataclass(frozen=True)
class Adapter:
    """One adapter: the folder of its sources, its executable, and what building takes.

    A folder may make several executables: they are built together. ``headers`` maps a header (any of several
    places) to its Debian package. ``install`` is what the user builds by hand, where no package has it.
    """

    folder: str
    executable: str
    headers: dict[tuple[str, ...], str]
    install: Install | None = None


_NS3 = {("ns3/simulator.h", "ns3.37/ns3/simulator.h"): "libns3-dev", **_GRPC}

_ADAPTERS = {
    "ns3": Adapter("ns3", "cosim-ns3", _NS3),
    "ns3_rdma": Adapter("ns3", "cosim-ns3-rdma", _NS3),
    "astrasim": Adapter("astrasim", "cosim-astrasim", _GRPC, ASTRA_SIM),
}


def names() -> tuple[str, ...]:
    """Every adapter that can be built."""
    return tuple(sorted(_ADAPTERS))


def find(name: str) -> Adapter:
    """The adapter of that name.

    Raises
    ------
    LaunchError
        No such adapter.
    """
    if name not in _ADAPTERS:
        known = ", ".join(names())
        raise LaunchError(f"there is no adapter {name!r}{nearest(name, names())}; there are: {known}")
    return _ADAPTERS[name]


def missing_packages(name: str) -> tuple[str, ...]:
    """Debian packages that building the adapter needs and that are not here."""
    adapter = find(name)
    absent = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    absent += [
        package
        for places, package in adapter.headers.items()
        if not any((root / place).exists() for root in _HEADERS for place in places)
    ]
    return tuple(sorted(set(absent)))


def sources(name: str) -> Path:
    """The folder of an adapter's sources; the protocol's files are at ``../../proto`` from there.

    Raises
    ------
    LaunchError
        They are not where they were installed.
    """
    package = Path(__file__).resolve().parents[1]
    for root in (package.parent, package / "shipped"):
        folder = root / "adapters" / find(name).folder
        if (folder / "CMakeLists.txt").exists() and (root / "proto").is_dir():
            return folder
    raise LaunchError(
        f"the sources of the adapter {name!r} are neither beside this package nor in it ({package})"
    )


def executable(name: str) -> Path:
    """Where the adapter's executable is or would be: its name holds a hash of its sources and of an install.

    Raises
    ------
    LaunchError
        What the user installs by hand is missing: says what and where.
    """
    folder = sources(name)
    proto = folder.parents[1] / "proto"
    content = hashlib.sha256()
    install = find(name).install
    if install is not None:
        content.update(install.library().read_bytes())
    for root in (folder, folder.parent / "common", proto):
        for path in sorted(p for p in root.rglob("*") if p.is_file() and p.suffix != ".md"):
            content.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    place = cache_folder("adapters") / f"{folder.name}-{content.hexdigest()[:16]}"
    return place / find(name).executable


def command(name: str, say: Callable[[str], None] | None = None) -> list[str]:
    """The command that starts the adapter, without an address; builds it first where it is not built.

    Raises
    ------
    LaunchError
        As :func:`build`.
    """
    return [str(build(name, say))]


def build(name: str, say: Callable[[str], None] | None = None, *, again: bool = False) -> Path:
    """Build an adapter with CMake, if it is not built yet; the executable.

    A build that was interrupted goes on where it was.

    Parameters
    ----------
    name
        One of :func:`names`.
    say
        Told what goes on: a build takes a minute or two.
    again
        Build although there is one.

    Raises
    ------
    LaunchError
        Packages are missing (says which, and the command that installs them) or what the user installs by
        hand (says what and where), or it doesn't compile (with the end of what the compiler said).
    """
    target = executable(name)
    if target.exists() and not again:
        return target
    absent = missing_packages(name)
    if absent:
        raise LaunchError(
            f"the {name} adapter can't be built: missing {', '.join(absent)}\n"
            f"  apt-get install -y {' '.join(absent)}"
        )
    place = target.parent
    with making(place / "lock", f"the {name} adapter", say):
        if target.exists() and not again:  # somebody else just built it
            return target
        folder = place / "build"
        if again:
            shutil.rmtree(folder, ignore_errors=True)
        goes_on = folder.is_dir()  # of a build that was interrupted
        if say is not None:
            how = "going on with" if goes_on else "building"
            say(f"{how} the {name} adapter in {place} (a minute or two, once)")
        try:
            _make(name, folder)
        except LaunchError:
            shutil.rmtree(folder, ignore_errors=True)
            if not goes_on:
                raise
            _make(name, folder)  # what was interrupted may have left half a file
        # Programs first, the one that says "built" last; each at once, so that none is seen half written.
        made = sorted(folder.glob("cosim-*"), key=lambda path: path.name == target.name)
        for path in made:
            if path.is_file() and os.access(path, os.X_OK):
                path.replace(place / path.name)
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _google_protos() -> Path:
    """The folder that holds google/rpc/status.proto: it comes with googleapis-common-protos."""
    from google.rpc import status_pb2

    return Path(status_pb2.__file__).resolve().parents[2]


def _make(name: str, folder: Path) -> None:
    jobs = str(max(1, min(4, os.cpu_count() or 1)))
    install = find(name).install
    steps = (
        [
            *("cmake", "-S", str(sources(name)), "-B", str(folder), "-DCMAKE_BUILD_TYPE=Release"),
            f"-DGOOGLE_PROTO_DIR={_google_protos()}",
            *([] if install is None else [f"-D{install.variable}={install.root()}"]),
        ],
        ["cmake", "--build", str(folder), "--parallel", jobs],
    )
    for step in steps:
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            lines = done.stdout.decode(errors="replace").splitlines()
            # The first error says more than the last.
            first = next(
                (n for n, line in enumerate(lines) if "rror" in line), max(0, len(lines) - _LOG_LINES)
            )
            raise LaunchError(
                f"building the {name} adapter failed: {' '.join(step[:2])} ended with {done.returncode}",
                server_log="\n".join(lines[first : first + _LOG_LINES]),
            )
