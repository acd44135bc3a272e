"""A few random worlds; ``python -m tests.kernel.worlds`` runs as many as are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.kernel.build import build, find_compiler
from tests.kernel.worlds import NETWORKS, digest

ROOT = Path(__file__).parents[2]
_SEEDS, _WATCHED = range(100, 104), range(100, 106)
_SANITIZERS = ("-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-DGROW_TIGHTLY")


@pytest.mark.parametrize("network", NETWORKS)
def test_a_run_in_pieces_is_the_same(network: str) -> None:
    for seed in _SEEDS:
        assert digest(network, seed, pieces=True) == digest(network, seed, pieces=False)


def _find(compiler: list[str], name: str) -> str:
    """Where the compiler has a library; its name where it has none."""
    asked = [*compiler, f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    compiler = find_compiler() or pytest.skip("there is no compiler")
    libraries = [_find(compiler, name) for name in ("libasan.so", "libubsan.so")]
    if not all(Path(one).is_absolute() for one in libraries):
        pytest.skip("the compiler has no sanitizers that can be loaded before Python")
    build(tmp_path / "libcosim.so", _SANITIZERS)
    done = subprocess.run(
        [sys.executable, "-m", "tests.kernel.worlds", "--seeds", f"{_WATCHED.start}:{_WATCHED.stop}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "COSIM_KERNEL": str(tmp_path / "libcosim.so"),
            "LD_PRELOAD": " ".join(libraries),
            # What Python never gives back is not the kernel's.
            "ASAN_OPTIONS": "detect_leaks=0",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
            "PYTHONWARNINGS": "ignore",
        },
    )
    assert (done.returncode, done.stderr) == (0, "")
    expected = [
        f"{kind} {seed}: {digest(kind, seed, pieces=False)}" for seed in _WATCHED for kind in NETWORKS
    ]
    assert done.stdout.splitlines() == expected
