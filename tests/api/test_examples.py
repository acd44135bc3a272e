"""Every public function and class has an example in its docstring; ``tests/examples`` runs it."""

from __future__ import annotations

import doctest
import subprocess
import sys
from typing import Any

import pytest

import cosim

OBJECTS: dict[str, Any] = {name: getattr(cosim, name) for name in cosim.__all__}
ERRORS = {name for name in OBJECTS if name.endswith("Error") and name != "CosimError"}
"""The tree has its example at its root."""


def test_every_object_has_an_example_and_errors_say_what_they_are() -> None:
    parse = doctest.DocTestParser().get_examples
    assert [name for name in {*OBJECTS} - ERRORS if not parse(OBJECTS[name].__doc__ or "")] == []
    for name in ERRORS:
        assert OBJECTS[name].__doc__, name
        assert issubclass(OBJECTS[name], cosim.CosimError), name


@pytest.mark.slow
def test_the_example_of_profile_runs() -> None:
    """It has to be the first to import torch."""
    pytest.importorskip("torch", reason="cosim.profile needs torch: pip install '.[profile]'")
    code = "import doctest, cosim; doctest.run_docstring_examples(cosim.profile, {}, name='profile')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
