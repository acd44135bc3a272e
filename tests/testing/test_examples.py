"""The examples of cosim.testing are run; hypothesis is asked for in one line."""

import doctest
import importlib
import subprocess
import sys

import pytest

MODULES = ["", ".faulty", ".recorder", ".conformance", ".conformance.network", ".strategies"]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"cosim.testing{name}"))
    assert found.attempted
    assert not found.failed


def test_without_hypothesis_all_else_works_and_strategies_say_what_is_missing() -> None:
    script = """
import sys
sys.modules["hypothesis"] = None
from cosim.testing import FaultyNetwork, Recorder, check_network
try:
    from cosim.testing import strategies
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    expected = "InputError: cosim.testing.strategies needs hypothesis\n  pip install hypothesis\n"
    assert done.stdout == expected
