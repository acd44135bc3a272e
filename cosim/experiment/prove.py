"""``cosim prove``: a collective algorithm, from a file or built in, is proved, or what is wrong is said.

What isn't there, or can't be read as what it should be, is a mistake of the user's (an InputError); what can
be read, but doesn't do what it promises, is a :class:`RefutedError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml

from cosim.errors import AlgorithmError, CosimError, InputError
from cosim.pattern.template import Collective, Template


class RefutedError(CosimError):
    """An algorithm that is wrong: the prover's own error, which says where."""


@contextmanager
def _refuting() -> Iterator[None]:
    try:
        yield
    except AlgorithmError as error:
        raise RefutedError(str(error)) from error


def prove_one(
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
    """
    kind = _collective(collective)
    path = Path(what)
    if path.is_file():
        return _msccl(path, kind, ranks, root)
    files = _prefix(path) if path.is_dir() else path
    if path.is_dir() or files.with_name(f"{files.name}.0.et").exists():
        return _chakra(files, kind, ranks)
    if path.suffix in (".xml", ".et"):
        raise InputError(f"there is no file {what}")
    return _by_name(what, kind, ranks, size_bytes, root)


def _collective(name: str | None) -> Collective | None:
    if name is None:
        return None
    names = [each.value for each in Collective]
    if name not in names:
        raise InputError(f"--collective {name}: it should be one of {', '.join(names)}")
    return Collective(name)


def _msccl(path: Path, collective: Collective | None, ranks: int | None, root: int) -> str:
    from cosim.formats.msccl.prove import collective_of, prove_program
    from cosim.formats.msccl.read import read_program

    program = read_program(path)
    if ranks is not None and ranks != len(program.gpus):
        raise InputError(f"--ranks {ranks}: {path} is for {len(program.gpus)} GPUs")
    if not 0 <= root < len(program.gpus):
        raise InputError(f"--root {root}: there are GPUs 0 to {len(program.gpus) - 1}")
    collective = collective_of(program, collective)
    with _refuting():
        return str(prove_program(program, collective, root=root))


def _prefix(folder: Path) -> Path:
    """The one PATH of PATH.0.et in a folder."""
    first = sorted(folder.glob("*.0.et"))
    if len(first) != 1:
        found = ", ".join(each.name for each in first) or "none"
        raise InputError(
            f"{folder} should have the Chakra files of one collective, NAME.0.et, NAME.1.et ...; first "
            f"files there: {found}"
        )
    return first[0].with_name(first[0].name.removesuffix(".0.et"))


def _chakra(prefix: Path, collective: Collective | None, ranks: int | None) -> str:
    from cosim.formats.chakra.read_messages import read_messages
    from cosim.pattern.custom import SEND, RankNodes, custom_template
    from cosim.pattern.prove import prove

    nodes = [RankNodes.from_columns(columns) for columns in read_messages(prefix)]
    if ranks is not None and ranks != len(nodes):
        raise InputError(f"--ranks {ranks}: there are {len(nodes)} files {prefix}.N.et")
    with _refuting():
        template = custom_template(str(prefix), collective or Collective.ALL_REDUCE, 0, nodes)
        prove(template)
    sends = sum(int((each.kind == SEND).sum()) for each in nodes)
    return (
        f"proved: {prefix}, {len(nodes)} ranks: every SEND meets a RECV of its size, nothing deadlocks\n"
        f"  {sum(len(each.node) for each in nodes)} nodes, {sends} messages, {template.total_bytes} bytes; "
        f"{len(template.block_repeat) - 2} steps along the longest way\n"
        "  what data the messages carry isn't in such files, so the result isn't proved"
    )


def _by_name(what: str, collective: Collective | None, ranks: int | None, size_bytes: int, root: int) -> str:
    from pydantic import ValidationError

    from cosim.experiment.build import custom_algorithm
    from cosim.pattern.config import CollectiveConfig
    from cosim.pattern.planner import Planner

    if collective is None or ranks is None:
        missing = " and ".join(
            option for option, value in (("--collective", collective), ("--ranks", ranks)) if value is None
        )
        raise InputError(f"{what} is no file, so it names an algorithm, which needs {missing}")
    try:
        config = CollectiveConfig.model_validate({collective.value: yaml.safe_load(what)})
    except (ValidationError, yaml.YAMLError) as error:
        said = (
            error.errors()[0]["msg"].removeprefix("Value error, ")
            if isinstance(error, ValidationError)
            else error
        )
        raise InputError(f"{what} is neither a file nor an algorithm: {said}") from None
    chosen = config.choice(collective)
    if isinstance(chosen, tuple):
        raise InputError("one algorithm is proved at a time")
    if not 2 <= ranks <= 1 << 16:
        raise InputError(f"--ranks {ranks}: it should be from 2 to 65536")
    chosen.check(collective, ranks)
    planner = Planner(config, read_custom=partial(custom_algorithm, Path()))
    with _refuting():
        plan = planner.plan(collective, ranks, size_bytes, root=root)
    return "\n".join(_of_template(phase.template) for phase in plan.chunks[0])


def _of_template(t: Template) -> str:
    from cosim.pattern.happens_before import RACE_LIMIT

    chunks = f"{t.num_chunks} chunks, " if t.num_chunks else ""
    between = t.src != t.dst
    channels = int(t.channel[between].max(initial=-1)) + 1
    if t.num_flows <= RACE_LIMIT or not t.num_chunks:
        how = "every order of messages gives this result"
    else:
        how = "the earliest and the latest order give this result, and in a small group every order"
    return (
        f"proved: {t.name}, {t.collective.value} over {t.num_ranks} ranks\n"
        f"  {chunks}{t.num_messages} messages in {int(t.block_repeat[1:-1].sum())} steps on {channels} "
        f"channel{'s' if channels != 1 else ''}, {t.total_bytes} bytes\n"
        f"  {how}"
    )
