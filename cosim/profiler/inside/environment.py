"""Which variables of the environment a script's own lines ask for, whether they are set or not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cosim.files.reads import Reads, by_script
from cosim.profiler.launch import OWN_VARIABLES


@contextmanager
def noted(reads: Reads, order: dict[str, Any]) -> Iterator[None]:
    """Note them inside; those that the scenario gives, or that are set here, are known anyway."""
    known = {*OWN_VARIABLES, *(name for name, _ in order["environment"])}
    before = dict(os.environ)
    kind = type(os.environ)

    class Noting(kind):  # type: ignore[misc, valid-type]
        """The environment, which tells what is asked for."""

        def __getitem__(self, name: str) -> str:
            value = None
            try:
                value = str(super().__getitem__(name))
                return value
            finally:
                asked = type(name) is str and name not in known  # Python itself tries with bytes
                if asked and value in (None, before.get(name)) and by_script():
                    reads.variables.add(name)

    os.environ.__class__ = Noting
    try:
        yield
    finally:
        os.environ.__class__ = kind
