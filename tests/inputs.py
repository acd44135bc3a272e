"""Where tests find what others wrote: figures in ``tests/data``, other files beside the checkout.

``tests/data/README.md`` says where each comes from. Inputs that aren't copied here are looked for in
``../shared/data``, or in the folder that ``COSIM_TEST_INPUTS`` names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED = ROOT / "tests" / "data"
BESIDE = Path(os.environ.get("COSIM_TEST_INPUTS", ROOT.parent / "shared" / "data"))


def find(name: str) -> Path:
    """An input's file or folder, in ``tests/data`` if it has it; otherwise where it would be put."""
    copied = COPIED / name
    return copied if copied.exists() else BESIDE / name


def absent(*names: str) -> str:
    """Which inputs aren't there and what to do about it; nothing if all are."""
    missing = [name for name in names if not find(name).exists()]
    if not missing:
        return ""
    return f"no {', '.join(missing)} in {BESIDE}: tests/data/README.md says where to get it"


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip where inputs are absent, and say where to get them."""
    return pytest.mark.skipif(bool(absent(*names)), reason=absent(*names) or "all inputs are here")
