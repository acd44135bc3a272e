"""C of a plug-in: compiled once, refused in a line with the compiler's first error."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from cosim.errors import InputError
from cosim.kernel import build, plugin

ANSWER = "double answer(double x) { return x * 42; }\n"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A plug-in's file; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plugin._load.cache_clear()
    file = tmp_path / "scenario" / "answer.c"
    file.parent.mkdir()
    file.write_text(ANSWER)
    yield file
    plugin._load.cache_clear()


def _ask(source: Path) -> float:
    return float(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(plugin.load(source, "answer"))(1))


def _kept(source: Path) -> list[str]:
    return sorted(path.name for path in (source.parents[1] / "cache" / "cosim" / "kernels").iterdir())


def test_it_is_compiled_once(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _ask(source) == 42
    assert len(_kept(source)) == 1
    plugin._load.cache_clear()  # as in another process, where there is no compiler
    monkeypatch.setattr(plugin, "compile_c", None)
    assert _ask(source) == 42


def test_an_edit_is_another_function(source: Path) -> None:
    assert _ask(source) == 42
    source.write_text(ANSWER.replace("42", "43"))
    assert _ask(source) == 43
    assert len(_kept(source)) == 2


def test_a_header_beside_it_counts(source: Path) -> None:
    source.write_text('#include "factor.h"\n' + ANSWER.replace("42", "FACTOR"))
    (source.parent / "factor.h").write_text("#define FACTOR 3\n")
    assert _ask(source) == 3
    (source.parent / "factor.h").write_text("#define FACTOR 4\n")
    assert _ask(source) == 4


def test_it_may_use_the_kernels_records(source: Path) -> None:
    source.write_text(
        '#include "kernel.h"\ndouble answer(double x) { return x * sizeof(struct control_row); }\n'
    )
    assert _ask(source) > 0


@pytest.mark.parametrize("base", ["file", "/proc/nowhere"])
def test_a_home_that_keeps_nothing_is_no_error(
    source: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    (source.parent / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(source.parent / base))
    assert _ask(source) == 42
    assert sorted(path.name for path in source.parent.iterdir()) == ["answer.c", "file"]


def test_what_was_cut_short_is_made_anew(source: Path) -> None:
    assert _ask(source) == 42
    plugin._load.cache_clear()
    folder = source.parents[1] / "cache" / "cosim" / "kernels"
    (made,) = folder.iterdir()
    made.rename(source.parent / "loaded")  # this process has it
    made.write_bytes((source.parent / "loaded").read_bytes()[:3000])
    assert _ask(source) == 42


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("double answer(double x) {\n  return y;\n}\n", r"answer\.c:2: .*y"),
        ("\n\ndouble answer(double x) { return other(x); }\n", r"answer\.c:3: .*other"),
        ('#include "nothing.h"\n', r"answer\.c:1: .*nothing\.h"),
        (
            '#include "kernel.h"\nvoid f(struct control_row *r) {\n r->windw = 1;\n}\n',
            r"answer\.c:3: .*windw",
        ),
        ("double question(double x) { return x; }\n", r"answer\.c: has no function answer"),
        ("static double answer(double x) { return x; }\n", r"answer\.c: has no function answer"),
        (
            "double other(double x);\ndouble answer(double x) { return other(x); }\n",
            r"answer\.c: can't .*other",
        ),
    ],
    ids=["name", "function", "include", "field", "absent", "static", "elsewhere"],
)
def test_what_is_wrong_is_said_with_file_and_line(source: Path, text: str, message: str) -> None:
    source.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        plugin.load(source, "answer")
    assert str(refused.value).startswith(str(source))
    assert "\n" not in refused.value.message


def test_no_compiler_says_what_to_install(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "find_compiler", lambda: None)
    with pytest.raises(InputError, match=r"answer\.c: no C compiler: .*`pip install ziglang`"):
        plugin.load(source, "answer")


def test_a_field_that_was_renamed_is_named(tmp_path: Path) -> None:
    source = tmp_path / "old.c"
    source.write_text(
        '#include "kernel.h"\nEXPORT double answer(struct choice *row) { return row->fresh; }\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"old\.c:2: (.|\n)*fresh is begins_message now"):
        plugin.load(source, "answer")
