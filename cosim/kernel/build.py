"""Compile C: the kernel, ``python -m cosim.kernel.build [flags of the compiler]``, and plug-ins' files.

It imports nothing of cosim, as it runs before cosim is installed, too (``hatch_build.py``).

=====================  ====================================================================================
``CC``                 The compiler, maybe with arguments, instead of ``cc``, ``gcc``, ``clang`` or zig.
``COSIM_KERNEL``       Another shared object to load instead of the package's. ``none``: no kernel is built
                       where cosim is installed, and none is loaded.
=====================  ====================================================================================
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
SOURCES = FOLDER / "src"
IS_MACOS = sys.platform == "darwin"
SUFFIX = ".dylib" if IS_MACOS else ".so"
FILE = FOLDER / f"libcosim{SUFFIX}"

ZIG = "ziglang>=0.14"
"""A compiler from the package index, for where the machine has none."""

# Results are the same on any machine: nothing is fused, nothing reordered, nothing made for this processor.
_FLAGS = ["-std=c17", "-O2", "-g0", "-fPIC", "-shared"]
_FLAGS += ["-ffp-contract=off", "-fno-strict-aliasing", "-fvisibility=hidden"]
# zig makes code for this very processor if it isn't told, and takes 5 seconds for a run-time library that C
# without 128-bit division doesn't call.
_ZIG_FLAGS = ["-mcpu=baseline", "-rtlib=none", "-fno-sanitize=undefined"]
_MACOS = {"arm64": "11.0"}.get(platform.machine(), "10.15")
_FLAGS_OF_SYSTEM = [f"-mmacosx-version-min={_MACOS}"] if IS_MACOS else ["-Wl,-Bsymbolic"]
_TRIAL = "#include <math.h>\n#include <stdint.h>\ndouble trial(double x) { return floor(x); }\n"


class BuildError(Exception):
    """C that can't be compiled. ``file`` and ``line`` say where, if the compiler did."""

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        self.message, self.file, self.line = message, file, line
        super().__init__(message if file is None else f"{file}:{line}: {message}")


def number() -> int:
    """The number of ``src/``, which what is built of it carries: another one is another layout, or stale."""
    value = 0
    for path in sorted(SOURCES.glob("[!.]*.[ch]")):
        value = zlib.crc32(path.read_bytes(), value)
    return value


def is_wanted() -> bool:
    """Whether ``COSIM_KERNEL`` is not ``none``."""
    return os.environ.get("COSIM_KERNEL") != "none"


def find_compiler() -> list[str] | None:
    """The first words of a command that compiles C, tried on three lines; None: there is no such compiler.

    Raises
    ------
    BuildError
        ``CC`` says one that can't be used.
    """
    return _find_compiler(os.environ.get("CC", ""), os.environ.get("PATH", ""))


@cache
def _find_compiler(named: str, path: str) -> list[str] | None:
    import shlex
    import shutil

    commands = [shlex.split(named)] if named.strip() else [["cc"], ["gcc"], ["clang"]]
    for command in commands:
        if shutil.which(command[0], path=path) and _works(command):
            return command
    if named.strip():
        raise BuildError(
            f"CC is {named!r}, which isn't there or can't compile C17: set it to another, or unset it"
        )
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", *_ZIG_FLAGS]
    return None


def _works(command: list[str]) -> bool:
    """Whether it makes a shared object: one without the system's headers, or too old, does not."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "trial.c")
        source.write_text(_TRIAL)
        return (
            _run([*command, *_FLAGS, *_FLAGS_OF_SYSTEM, "trial.c", "-o", "trial.so", "-lm"], folder)[0] == 0
        )


def _run(command: list[str], folder: Path | str) -> tuple[int, str]:
    import subprocess
    import tempfile

    # zig keeps what it makes, which is no use for one file, and may not write to the home.
    with tempfile.TemporaryDirectory() as kept:
        environment = os.environ | {"LC_ALL": "C", "ZIG_GLOBAL_CACHE_DIR": kept, "ZIG_LOCAL_CACHE_DIR": kept}
        try:
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        except OSError as error:
            return 1, f"{command[0]}: {error.strerror}"
    return done.returncode, done.stderr.decode(errors="replace")


def compile_c(source: Path, target: Path, flags: Sequence[str] = ()) -> str:
    """Make a shared object of a file, whole or not at all, whoever else does so; what the compiler said.

    Raises
    ------
    BuildError
        There is no compiler, or it found an error: the first one.
    OSError
        The target's folder can't be written to.
    """
    import tempfile

    compiler = find_compiler()
    if compiler is None:
        raise BuildError("no C compiler: install gcc or clang, or `pip install ziglang`, which has one")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        made = Path(folder, target.name)
        wanted = [*_FLAGS, *_FLAGS_OF_SYSTEM, *flags, source.name, "-o", str(made.absolute()), "-lm"]
        failed, said = _run([*compiler, *wanted], source.parent)
        if failed:
            raise _first_error(said, source, compiler)
        made.replace(target)
    return said


def _first_error(said: str, source: Path, compiler: list[str]) -> BuildError:
    import re

    if found := re.search(r"^(\S.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", said, re.MULTILINE):
        file = source.parent / found[1]
        return BuildError(found[3], str(file), int(found[2]))
    lines = [line for line in said.splitlines() if line.strip()]
    telling = ("error", "undefined", "cannot find", "unable to find")
    first = [line for line in lines if any(word in line for word in telling)] or lines or ["says nothing"]
    return BuildError(f"{source}: {' '.join(compiler[:4])} fails: {first[0].strip()}")


def build(target: Path = FILE, flags: Sequence[str] = ()) -> str:
    """Compile the kernel; returns the compiler's warnings."""
    return compile_c(SOURCES / "kernel.c", target, [*flags, f"-DCOSIM_ABI={number()}"])


def platform_tag() -> str:
    """The platform of a wheel with what is compiled here."""
    if IS_MACOS:
        return f"macosx_{_MACOS.replace('.', '_')}_{platform.machine()}"
    import sysconfig

    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def main() -> None:
    """Build it, and say what is wrong in a line."""
    try:
        print(build(flags=sys.argv[1:]), end="", file=sys.stderr)
    except (BuildError, OSError) as error:
        sys.exit(f"the kernel can't be built: {error}")


if __name__ == "__main__":
    main()
