"""Names of hosts: a YAML file that says what each address is called; several addresses may be one host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from cosim.captures.traffic import TrafficCapture
from cosim.errors import InputError, Location
from cosim.files import located_yaml


def read_hosts(path: Path) -> dict[str, str]:
    """Read ``ADDRESS: NAME`` lines.

    Raises
    ------
    InputError
        The file isn't there, or is no such mapping.
    """
    value = located_yaml.read(path, InputError).value
    if not isinstance(value, dict) or not all(isinstance(name, (str, int)) for name in value.values()):
        raise InputError(
            "not names of hosts", location=Location(str(path)), hint="write a line ADDRESS: NAME for each"
        )
    return {str(address): str(name) for address, name in value.items()}


def named(capture: TrafficCapture, names: dict[str, str]) -> TrafficCapture:
    """The capture with hosts named, those of one name as one host; a note says which have no name."""
    found = capture.transfers
    if found is None:
        return capture
    hosts: dict[str, int] = {}
    for name in names.values():
        hosts.setdefault(name, len(hosts))
    unknown = [host for host in found.hosts if host not in names and host not in hosts]
    number = np.array([hosts.setdefault(names.get(host, host), len(hosts)) for host in found.hosts], np.int32)
    if len(number):
        found = replace(found, hosts=tuple(hosts), src=number[found.src], dst=number[found.dst])
    notes = capture.notes
    if unknown:
        notes = (*notes, f"{len(unknown)} addresses without a name: {', '.join(unknown[:5])}")
    return replace(capture, transfers=found, notes=notes)
