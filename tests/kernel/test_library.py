"""A shared object that can't be used is refused in a line: why, and how to build it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cosim.kernel.build import FILE, compile_c
from cosim.kernel.library import KernelLibrary, KernelLibraryError, pointed_at


@pytest.fixture
def instead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that is loaded instead of the kernel; it is not there yet."""
    file = tmp_path / FILE.name
    monkeypatch.setenv("COSIM_KERNEL", str(file))
    return file


def _refusal() -> str:
    """What is said where the kernel can't be used."""
    why = KernelLibrary().why_not()
    assert why is not None
    assert "\n" not in why
    with pytest.raises(KernelLibraryError) as refused:
        KernelLibrary().load()
    assert why == str(refused.value)
    return why


def test_the_kernel_here_can_be_used() -> None:
    assert KernelLibrary().why_not() is None


def test_another_copy_can_be_used(instead: Path) -> None:
    shutil.copy(FILE, instead)
    assert KernelLibrary().why_not() is None


def test_it_is_not_built(instead: Path) -> None:
    why = _refusal()
    assert why.startswith(
        f"the kernel is not built, there is no {instead}; build it by `python -m cosim.kernel.build`"
    )


def test_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSIM_KERNEL", "none")
    assert "COSIM_KERNEL is none" in _refusal()


def test_it_is_no_shared_object(instead: Path) -> None:
    instead.write_text("not a library\n")
    assert "can't be loaded" in _refusal()
    instead.write_bytes(b"")
    assert "can't be loaded" in _refusal()


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.999])
def test_it_is_cut_short(instead: Path, part: float) -> None:
    """In a process of its own: the system would end it."""
    whole = FILE.read_bytes()
    instead.write_bytes(whole[: int(part * len(whole))])
    program = "from cosim.kernel import kernel; print(kernel.why_not())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert "the kernel can't be loaded: " in done.stdout
    assert str(instead) in done.stdout


def test_it_was_built_from_other_sources(instead: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("#include <stdint.h>\nint64_t abi(void) { return 5; }\n")
    compile_c(source, instead, ["-fvisibility=default"])
    assert f"the kernel {instead} was built from other sources than this cosim's; build it by" in _refusal()


def test_it_is_someone_elses_library(instead: Path, tmp_path: Path) -> None:
    source = tmp_path / "other.c"
    source.write_text("int something(void) { return 5; }\n")
    compile_c(source, instead, ["-fvisibility=default"])
    assert f"{instead} is no kernel of cosim's" in _refusal()


def test_importing_needs_no_kernel(instead: Path) -> None:
    program = (
        "import cosim\nfrom cosim.kernel import kernel, record\nprint(kernel.DONE, record('event').itemsize)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split()[0] == "0"


def test_addresses_of_functions() -> None:
    kernel = KernelLibrary()
    address = kernel.address("run_aware")
    assert pointed_at(address) == address > 0
    assert pointed_at(kernel.load().run_aware) == address
    assert pointed_at(True) == pointed_at(-1) == pointed_at(None) == pointed_at("run_aware") == 0
