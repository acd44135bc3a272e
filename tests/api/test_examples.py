"""Every public function and class has an example in its docstring, and it runs."""

from __future__ import annotations

import doctest
import subprocess
import sys
from typing import Any

import pytest

import cosim

OBJECTS = {name: getattr(cosim, name) for name in cosim.__all__}
ERRORS = {name for name in OBJECTS if name.endswith("Error") and name != "CosimError"}
"""The tree has its example at its root."""
SLOW = {"profile"}
"""It imports torch in a process of its own; pages with such commands are not slow."""


def examples(name: str) -> doctest.DocTest:
    found: Any = OBJECTS[name]
    return doctest.DocTestParser().get_doctest(found.__doc__ or "", {}, name, None, 0)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in sorted({*OBJECTS} - ERRORS)],
)
def test_the_example_runs(name: str) -> None:
    example = examples(name)
    assert example.examples, f"cosim.{name} has no example"
    if name == "profile":
        pytest.importorskip("torch", reason="cosim.profile needs torch: pip install '.[profile]'")
        code = f"import doctest, cosim; doctest.run_docstring_examples(cosim.{name}, {{}}, name={name!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == ""
        return
    said: list[str] = []
    result = doctest.DocTestRunner().run(example, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_says_what_it_is(name: str) -> None:
    assert OBJECTS[name].__doc__
    assert issubclass(OBJECTS[name], cosim.CosimError)
