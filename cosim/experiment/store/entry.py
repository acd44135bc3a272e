"""One run of a store, as a small file: what was asked, what came of it, and what it rests on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from cosim.errors import InputError

FORMAT = 1


@dataclass(frozen=True)
class StoreEntry:
    """A stored run.

    Attributes
    ----------
    id
        Its name in the store: the question's hash, and that of the files read.
    name
        Of the scenario.
    settings
        The scenario as plain values.
    version
        Of cosim, with a hash of its sources.
    files
        State of each file that was read, by its path from the scenario's folder.
    digest
        Of all that happened.
    measures
        Every measure that the run has, by name.
    alone
        Mean iteration of each job by itself, picoseconds; None where it was not asked for.
    error
        Why it could not go on; empty where it did.
    seconds
        It took, by the wall's clock.
    created
        When, UTC, as ISO 8601 has it.
    parts
        Hash of each file of its folder, by name.
    doubtful
        What can make it wrong by more than its interval.
    base
        The folder that its files are relative to, where it was run.
    """

    id: str
    name: str
    settings: dict[str, Any]
    version: str
    files: dict[str, str]
    digest: str
    measures: dict[str, float]
    alone: dict[str, float] | None
    error: str
    seconds: float
    created: str
    parts: dict[str, str] = field(default_factory=dict)
    doubtful: str = ""
    base: str = ""

    @property
    def seed(self) -> int:
        """The scenario's seed."""
        seed: int = self.settings.get("seed", 0)
        return seed

    @property
    def network(self) -> str:
        """Its name."""
        network = self.settings.get("network", "")
        named = network.get("model") or network.get("plugin") if isinstance(network, dict) else network
        return str(named or "")


def to_bytes(entry: StoreEntry) -> bytes:
    """JSON, with a checksum in front."""
    text = json.dumps({"format": FORMAT, **asdict(entry)}, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    return hashlib.sha256(text).hexdigest()[:16].encode() + b"\n" + text + b"\n"


def from_bytes(content: bytes) -> StoreEntry:
    """What :func:`to_bytes` gave.

    Raises
    ------
    InputError
        It is cut off or changed, or of another format.
    """
    total, _, text = content.partition(b"\n")
    if hashlib.sha256(text.rstrip(b"\n")).hexdigest()[:16].encode() != total:
        raise InputError("its checksum is wrong: cut off, or changed")
    values: dict[str, Any] = json.loads(text.decode("utf-8", "surrogatepass"))
    if (found := values.pop("format", None)) != FORMAT:
        raise InputError(f"of format {found}; this version of cosim reads format {FORMAT}")
    return StoreEntry(**values)
