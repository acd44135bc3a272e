"""The catalogue of hosts: one file each in ``data/``, of the form that a scenario's ``kind: table`` reads.

A file has the host's numbers, their source, and which were fitted and to what. ``UNKNOWN`` is what a GPU is
taken to be issued by whose file names no host. A new host is a new file and a line among the entry points of
the group ``cosim.hosts``.
"""

from __future__ import annotations

from pathlib import Path

from cosim.files.catalogue import Catalogue
from cosim.host.hosts import Host

_FILES = Catalogue(Path(__file__).parent / "data", Host, "host")
names, read = _FILES.names, _FILES.read


def __getattr__(name: str) -> Host:
    """``PYTORCH_2026`` is the host of ``pytorch-2026.yaml``."""
    return _FILES.constant(name)
