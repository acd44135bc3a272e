"""Whether all that a plug-in reads is seen: else its runs are run, and not stored.

What Python opens and lists is watched (:mod:`cosim.files.reads`). The rest can't be: the environment, the
clock, other programs, libraries of C that open files themselves, whether a file is there. So a plug-in's
source may import only what is listed here, and files beside it, and use none of the names through which
something else is asked. This says what a plug-in *could* read; code that hides it on purpose is not looked
for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cosim.errors import InputError

_KNOWN = frozenset(
    """
    __future__ abc annotated_types array bisect bz2 cmath collections configparser contextlib copy cosim csv
    dataclasses decimal enum fractions functools gzip hashlib heapq io itertools json lzma math networkx numba
    numbers numpy operator pathlib pprint pydantic queue re statistics string struct textwrap threading
    tomllib types typing typing_extensions warnings yaml zipfile zlib
    """.split()  # noqa: SIM905 - a list of words
)
"""Modules that read nothing, or through Python's ``open``."""
_ELSEWHERE = frozenset({"cosim.protocol", "numpy.ctypeslib", "numpy.f2py", "numpy.distutils"})
"""Parts of them that start programs, or load code that no hash stands for."""
_NAMES = frozenset(
    """
    __builtins__ __import__ __loader__ compile ctypeslib cwd environ eval exec exists expanduser getenv
    getmtime getsize home input is_dir is_file is_symlink lstat owner readlink samefile stat
    """.split()  # noqa: SIM905 - a list of words
)
_HEADERS = frozenset(
    """
    assert.h float.h inttypes.h limits.h math.h stdbool.h stddef.h stdint.h stdlib.h string.h
    """.split()  # noqa: SIM905 - a list of words
)
_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_C_READS = re.compile(r"\b(fopen|open|getenv|popen|system|dlopen|time|clock|rand)\s*\(")


def check_closed(contents: Mapping[Path, bytes]) -> None:
    """Look through a plug-in's files.

    Raises
    ------
    InputError
        One may read what is not seen: says which, and through what.
    """
    beside = {path.stem if path.name != "__init__.py" else path.parent.name for path in contents}
    for path, text in contents.items():
        if path.suffix == ".py":
            for line, why in _in_python(text, beside):
                raise _refusal(path, line, why)
        elif path.suffix == ".c":
            for line, why in _in_c(text.decode("utf-8", "replace")):
                raise _refusal(path, line, why)
        elif path.suffix not in (".json", ".yaml", ".csv"):
            raise _refusal(path, 1, "it is compiled")


def _refusal(path: Path, line: int, why: str) -> InputError:
    return InputError(f"{path.name}:{line}: {why}: what it reads so is not seen, and its runs are not stored")


def _in_python(text: bytes, beside: set[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for one in node.names:
                if not _is_known(one.name, beside):
                    yield node.lineno, f"imports {one.name}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for one in node.names:
                name = f"{node.module}.{one.name}"
                if not _is_known(name, beside):
                    yield node.lineno, f"imports {node.module}"
                elif one.name in _NAMES:
                    yield node.lineno, f"imports {name}"
        elif isinstance(node, ast.Attribute) and node.attr in _NAMES and not _is_compile(node):
            yield node.lineno, f"uses .{node.attr}"
        elif isinstance(node, ast.Name) and node.id in _NAMES:
            yield node.lineno, f"uses {node.id}"


def _is_compile(node: ast.Attribute) -> bool:
    """``re.compile``."""
    return node.attr == "compile" and isinstance(node.value, ast.Name) and node.value.id == "re"


def _is_known(name: str, beside: set[str]) -> bool:
    if any(name == one or name.startswith(f"{one}.") for one in _ELSEWHERE):
        return False
    return name.partition(".")[0] in _KNOWN | beside


def _in_c(text: str) -> Iterator[tuple[int, str]]:
    for found in _INCLUDE.finditer(text):
        if found[1] not in _HEADERS:
            yield text.count("\n", 0, found.start(1)) + 1, f"includes {found[1]}"
    for found in _C_READS.finditer(text):
        yield text.count("\n", 0, found.start(1)) + 1, f"calls {found[1]}"
