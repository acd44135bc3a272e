"""``cosim prove``: a collective algorithm, from a file or built in, is proved, or what is wrong is said.

What isn't there, or can't be read as what it should be, is a mistake of the user's (an InputError); what can
be read, but doesn't do what it promises, is a :class:`~cosim.errors.RefutedError`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from cosim.context import HERE
from cosim.errors import AlgorithmError, InputError, RefutedError, ScenarioError
from cosim.files.located_yaml import parse_value
from cosim.pattern.config import one_algorithm
from cosim.pattern.contract import Algorithm, registered
from cosim.pattern.template import Collective


def prove(
    what: str,
    collective: str | None = None,
    ranks: int | None = None,
    size_bytes: int = 1 << 20,
    root: int = 0,
) -> str:
    """Prove an MSCCL XML file, Chakra files (a folder, or PATH of PATH.0.et ...), or an algorithm by name.

    Parameters
    ----------
    what
        A file, a folder, or what a scenario's ``collectives`` take: ``{algorithm: ring, channels: 2}``.
    collective, ranks
        An algorithm by name needs both; a file says them itself, but for what is ``custom``.
    size_bytes
        Sizes the messages that are counted; no proof depends on it.
    root
        Where a broadcast starts.

    Returns
    -------
    str
        What was proved.

    Raises
    ------
    RefutedError
        It is wrong: a deadlock, a race, a wrong result.
    InputError
        There is no such thing, or it can't be read.

    Examples
    --------
    >>> import cosim
    >>> print(cosim.prove("ring", "all_reduce", ranks=4))
    proved: ring, all_reduce over 4 ranks
      4 chunks, 24 messages in 6 steps on 1 channel, 6291456 bytes
      every order of messages gives this result
    """
    asked = _collective(collective)
    algorithm = (_in_file(Path(what)) or _by_name(what)).read(HERE)
    kind, num_ranks = algorithm.meant_for(asked, ranks)
    if not 0 <= root < num_ranks:
        raise InputError(f"--root {root}: there are ranks 0 to {num_ranks - 1}")
    algorithm.check(kind, num_ranks)
    try:
        return algorithm.prove(kind, num_ranks, size_bytes, root=root)
    except AlgorithmError as error:
        raise RefutedError(str(error)) from error


def _collective(name: str | None) -> Collective | None:
    if name is None:
        return None
    names = [each.value for each in Collective]
    if name not in names:
        raise InputError(f"--collective {name}: it should be one of {', '.join(names)}")
    return Collective(name)


def _in_file(path: Path) -> Algorithm | None:
    """What a file or a folder holds, by who knows it; None where there is neither."""
    for kind in registered().values():
        found = kind.in_file(path)
        if found is not None:
            return found
    if path.exists():
        raise InputError(f"{path} holds no collective algorithm", hint="it can be MSCCL XML, or Chakra files")
    if path.suffix in (".xml", ".et"):
        raise InputError(f"there is no file {path}")
    return None


def _by_name(what: str) -> Algorithm:
    try:
        return one_algorithm(parse_value(what), Path())
    except (ValueError, ScenarioError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise InputError(f"{what} is neither a file nor an algorithm: {said}") from None
