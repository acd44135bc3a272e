"""Settings that no scenario, page or test sets: ``python -m tests.docs.settings``.

A line for each, with its class; those that the package's own code or data sets are left out.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import cosim
from cosim.spec import Spec
from tests.inputs import ROOT

_KEY = re.compile(r"(\w+)[\"'\]]*\s*[:=]|\.(\w+)|\"(\w+)\"")
_SET = re.compile(r"(\w+)[\"'\]]*\s*[:=]")
_OWN = re.compile(r"^\s+(\w+): .*$", re.MULTILINE)
"""A field where its class has it; its own line is no use of it."""


def settings() -> dict[tuple[str, str], str]:
    """(Class, key) of every setting, and the module of its class."""
    for module in pkgutil.walk_packages(cosim.__path__, "cosim."):
        if ".inside" not in module.name and "__main__" not in module.name and ".libcosim" not in module.name:
            importlib.import_module(module.name)
    return {
        (kind.__name__, kind.model_fields[name].alias or name): kind.__module__
        for kind in _kinds(Spec)
        for name in inspect.get_annotations(kind)
        if name in kind.model_fields and kind.__module__.startswith("cosim.")
    }


def _kinds(kind: type[Spec]) -> Iterator[type[Spec]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)


def used() -> set[str]:
    """Keys that something sets or asks for."""
    folders = {
        "scenarios": ("*.yaml",),
        "docs": ("*.md",),
        "tests": ("*.py", "*.yaml"),
        "adapters": ("*.py",),
    }
    files = [path for folder, kinds in folders.items() for kind in kinds for path in _files(folder, kind)]
    found = {key for path in [*files, ROOT / "README.md", *_files("cosim", "*.yaml")] for key in _keys(path)}
    for path in _files("cosim", "*.py"):
        found |= {*_SET.findall(_OWN.sub("", path.read_text(encoding="utf-8")))}
    return found


def _files(folder: str, kind: str) -> list[Path]:
    return [path for path in (ROOT / folder).rglob(kind) if "_build" not in path.parts]


def _keys(path: Path) -> list[str]:
    found = _KEY.findall(path.read_text(encoding="utf-8", errors="replace"))
    return [key for keys in found for key in keys if key]


def main() -> None:
    """Print them."""
    every, known = settings(), used()
    for (kind, key), module in sorted(every.items(), key=lambda one: (one[1], one[0])):
        if key not in known:
            print(f"{module}.{kind}.{key}")
    print(f"{len(every)} settings, {len({key for _, key in every})} names")


if __name__ == "__main__":
    main()
