"""The kernel is compiled where it is installed, with what is there."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cosim.kernel import build
from cosim.kernel.build import BuildError, compile_c, find_compiler

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file that can be compiled."""
    file = tmp_path / "one.c"
    file.write_text("int one(void) { return 1; }\n")
    return file


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None on PATH, and no zig."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    build._find_compiler.cache_clear()


def test_no_compiler_says_what_to_do(no_compiler: None, source: Path) -> None:
    assert find_compiler() is None
    with pytest.raises(BuildError, match=r"^no C compiler: install gcc or clang, or `pip install ziglang`"):
        compile_c(source, source.with_suffix(".so"))


def test_zig_is_asked_for_only_where_there_is_no_compiler(
    no_compiler: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name == "ziglang" else None)
    found = find_compiler()
    assert found is not None
    assert found[:4] == [sys.executable, "-m", "ziglang", "cc"]
    assert "-mcpu=baseline" in found  # or it would make code for this very processor


def test_a_compiler_that_compiles_nothing_is_none(
    no_compiler: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "empty" / "cc"
    broken.write_text("#!/bin/sh\necho no headers >&2\nexit 1\n")
    broken.chmod(0o755)
    assert find_compiler() is None


def test_a_compiler_may_have_arguments(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    monkeypatch.setenv("CC", "cc -DONE=1 '-DTWO=2 + 2'")
    assert find_compiler() == ["cc", "-DONE=1", "-DTWO=2 + 2"]
    source.write_text('_Static_assert(TWO == 4, "one argument");\nint one = ONE;\n')
    compile_c(source, source.with_suffix(".so"))


@pytest.mark.parametrize("named", ["nothing-of-this-name", "cc -std=c8"])
def test_a_compiler_that_was_named_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, source: Path, named: str
) -> None:
    monkeypatch.setenv("CC", named)
    with pytest.raises(BuildError, match=f"CC is '{named}', which isn't there or can't compile C17"):
        compile_c(source, source.with_suffix(".so"))


def test_the_first_error_has_file_and_line(source: Path) -> None:
    source.write_text("int one(void) {\n  return x1;\n}\nint two(void) { return x2; }\n")
    with pytest.raises(BuildError, match="x1") as refused:
        compile_c(source, source.with_suffix(".so"))
    assert str(refused.value).startswith(f"{source}:2: ")
    assert "\n" not in str(refused.value)
    assert not source.with_suffix(".so").exists()
    assert sorted(path.name for path in source.parent.iterdir()) == ["one.c"]


def test_what_the_linker_lacks_is_named(source: Path) -> None:
    with pytest.raises(BuildError, match=f"{source}: .* fails: .*nothing_known"):
        compile_c(source, source.with_suffix(".so"), ["-lnothing_known"])


def test_a_kernel_is_replaced_whole(source: Path) -> None:
    """What was there stays where compiling fails, and what a process has loaded isn't written over."""
    made = source.with_suffix(".so")
    compile_c(source, made)
    before = made.stat().st_ino
    source.write_text("int one(void) {\n")
    with pytest.raises(BuildError):
        compile_c(source, made)
    assert made.stat().st_ino == before
    source.write_text("int two(void) { return 2; }\n")
    compile_c(source, made)
    assert made.stat().st_ino != before


def test_two_builds_at_once(source: Path) -> None:
    made = source.with_suffix(".so")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.starmap(compile_c, [(source, made)] * 4)
    assert sorted(path.name for path in source.parent.iterdir()) == ["one.c", "one.so"]


def test_the_same_sources_make_the_same_file(source: Path, tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        copy = folder / "one.c"
        copy.write_bytes(source.read_bytes())
        compile_c(copy, folder / "one.so")
        made.append((folder / "one.so").read_bytes())
    assert made[0] == made[1]
    assert str(tmp_path).encode() not in made[0]


def test_any_change_of_the_sources_changes_the_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for path in build.SOURCES.glob("*.[ch]"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = build.number()
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    assert build.number() == before
    with (tmp_path / "calendar.c").open("a") as file:
        file.write("/* edited */\n")
    assert build.number() != before


def test_the_command_says_what_is_wrong_in_a_line() -> None:
    environment = os.environ | {"CC": "nothing-of-this-name"}
    done = subprocess.run(
        [sys.executable, build.__file__],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the kernel can't be built: CC is 'nothing-of-this-name'")
    assert len(done.stderr.splitlines()) == 1


def _hook(root: Path, environment: dict[str, str]) -> str:
    """What hatchling asks for, for a wheel of a checkout; skips without hatchling."""
    pytest.importorskip("hatchling", reason="pip install hatchling")
    program = "from hatchling.build import get_requires_for_build_wheel as ask; print(ask())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_a_wheel_asks_for_zig_only_without_a_compiler(tmp_path: Path) -> None:
    with_compiler = {**os.environ}
    without = {**os.environ, "PATH": str(tmp_path)}
    assert _hook(ROOT, with_compiler) == "[]"
    assert _hook(ROOT, without) == str([build.ZIG])
    assert _hook(ROOT, without | {"COSIM_KERNEL": "none"}) == "[]"


@pytest.mark.slow
def test_a_wheel_has_the_kernel_and_its_platform(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="pip install hatchling")
    program = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    name = done.stdout.split()[-1]
    assert re.fullmatch(r"cosim_net-[0-9.]+-py3-none-(linux|macosx)_\w+\.whl", name)
    with zipfile.ZipFile(tmp_path / name) as wheel:
        listed = set(wheel.namelist())
    assert f"cosim/kernel/{build.FILE.name}" in listed
    assert {f"cosim/kernel/src/{path.name}" for path in build.SOURCES.glob("*.[ch]")} <= listed
