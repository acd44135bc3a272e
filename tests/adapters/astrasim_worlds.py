"""What the tests of ASTRA-sim share: where it is, or why they skip."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from cosim.errors import LaunchError
from cosim.protocol import adapters
from cosim.protocol.client import RemoteNetwork, launch


@cache
def _built() -> tuple[str, str]:
    """(The adapter's executable, why it isn't there)."""
    try:
        adapters.executable("astrasim")
    except LaunchError as error:
        return "", str(error).replace("\n  ", "; ")
    if absent := adapters.missing_packages("astrasim"):
        return "", f"missing {', '.join(absent)}"
    return str(adapters.build("astrasim", lambda text: print(text, file=sys.stderr))), ""


def astrasim() -> str:
    """The adapter's executable; skips, saying so, where ASTRASIM_ROOT names no ASTRA-sim."""
    path, why = _built()
    if not path:
        pytest.skip(why)
    return path


def network() -> RemoteNetwork:
    """A session on a server of its own."""
    return launch([astrasim()])
