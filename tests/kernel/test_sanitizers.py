"""A part of the suite on a kernel that AddressSanitizer and UBSan watch: nothing is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.kernel.build import IS_MACOS, build
from tests.kernel.worlds import NETWORKS, digest

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/kernel/test_columns.py",
    "tests/network/test_analytical_changes.py",
    "tests/network/test_aware_and_unaware.py",
    "tests/network/test_hybrid.py",
    "tests/network/test_fair_share.py",
    "tests/network/test_link_changes.py",
    "tests/network/balancing",
    "tests/network/congestion",
    "tests/experiment/test_series.py",
    "tests/pattern/test_prove_mutants.py",
)
SCENARIOS = (
    *("quickstart", "plug-in", "link-failure", "pfc-victim", "two-jobs"),
    *("device-all-reduce", "device-overlap"),
)
WORLDS = range(100, 106)
_FLAGS = [
    "-O1",
    "-g",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-DGROW_TIGHTLY",
]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose kernel is watched."""
    if IS_MACOS:
        pytest.skip("the system lets nothing be loaded before Python")
    folder = tmp_path_factory.mktemp("watched")
    asked = ["cc", "-print-file-name=libasan.so"]
    library = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    build(folder / "kernel.so", _FLAGS)
    return {
        **os.environ,
        "COSIM_KERNEL": str(folder / "kernel.so"),
        "LD_PRELOAD": library,
        # Python frees little at its end; a column that can't be had is an error of ours, not the end.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    }


@pytest.mark.slow
def test_a_part_of_the_suite(watched: dict[str, str]) -> None:
    there = [test for test in TESTS if (ROOT / test).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *there]
    done = subprocess.run(
        command, cwd=ROOT, env=watched, capture_output=True, text=True, check=False, timeout=1800
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


@pytest.mark.slow
def test_scenarios(watched: dict[str, str]) -> None:
    program = "import sys, cosim\nfor name in sys.argv[1:]: cosim.run(f'scenarios/{name}.yaml')"
    command = [sys.executable, "-c", program, *SCENARIOS]
    done = subprocess.run(
        command, cwd=ROOT, env=watched, capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-6000:]


@pytest.mark.slow
def test_random_worlds(watched: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tests.kernel.worlds", "--seeds", f"{WORLDS.start}:{WORLDS.stop}"]
    done = subprocess.run(
        command, cwd=ROOT, env=watched, capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-6000:]
    expected = [f"{kind} {seed}: {digest(kind, seed, pieces=False)}" for seed in WORLDS for kind in NETWORKS]
    assert done.stdout.splitlines() == expected


@pytest.mark.slow
def test_what_is_wrong_is_found(watched: dict[str, str]) -> None:
    """A read beyond a column ends the process: the watch is on."""
    program = (
        "import numpy as np\nfrom cosim.kernel import kernel\n"
        "from cosim.network.core import Core\nfrom cosim.network.core import make_calendar\n"
        "one = np.zeros(1, np.int32); time = np.zeros(1, np.int64)\n"
        "kernel.give(Core(calendar=make_calendar()), 1, one, one, one, time, time)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=watched,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert "runtime error" in done.stderr or "AddressSanitizer" in done.stderr
