"""``with cosim.profile("job.yaml", world_size=1024):`` around training code, in this process.

What is run inside is seen as rank ``rank`` of ``world_size``; at the end the profile is written. Ranks that
do something else (stages of a pipeline) can't be seen from here: ``cosim profile`` runs each in its own
process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from cosim.errors import InputError
from cosim.profiler import file
from cosim.profiler.file import ClassProgram
from cosim.profiler.launch import ProfileRequest, assemble, check_numbers, device
from cosim.profiler.lower import merged
from cosim.profiler.scale import without_unused


@contextmanager
def profile(
    path: str | Path,
    *,
    world_size: int = 1,
    gpu: str = "h100-sxm",
    rank: int = 0,
    per_node: int = 8,
    iteration: int = 1,
    imbalance: float = 1.0,
    routing: str = "even",
    lengths: str = "",
    acceptance: str = "",
    seed: int = 0,
) -> Iterator[None]:
    """Profile what is run inside, up to the end of ``iteration``; the rest of the block is left out.

    Import torch inside the block. The process is changed for good: profile once, and do nothing else with
    torch.

    Parameters
    ----------
    path
        The profile to write.
    world_size, rank
        Ranks that the code is to see, and which of them it is.
    gpu
        Whose times computations take, as `cosim list gpu` names it; a scenario may name another later.
    per_node
        Ranks on a node.
    iteration
        The one to keep, from 0; the first sets things up.
    imbalance
        Load of the busiest expert over the mean.
    routing, lengths, acceptance, seed
        Of tokens over experts, of answers, of drafted tokens: words or files, as on the command line; what is
        drawn depends on the seed.

    Raises
    ------
    InputError
        torch is there already, or not at all.
    WorkloadError
        The block ended without an optimizer step.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import cosim
    >>> file = pathlib.Path(tempfile.mkdtemp(), "job.yaml")
    >>> with cosim.profile(file, world_size=8):
    ...     import torch
    ...     model = torch.nn.Linear(64, 64).cuda()
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    ...     for _ in range(3):
    ...         model(torch.ones(4, 64, device="cuda")).sum().backward()
    ...         optimizer.step()
    >>> run = cosim.run({
    ...     "topology": {"kind": "switch", "endpoints": 8, "rate": "400Gbps", "latency": "1us"},
    ...     "network": "fair_share",
    ...     "jobs": [{"workload": {"kind": "profile", "path": str(file)}}],
    ... })
    >>> run.summary.jobs[0].num_ranks
    8
    """
    request = ProfileRequest(
        "a block of Python", (), world_size, gpu, per_node, iteration, imbalance=imbalance,
        routing=routing, lengths=lengths, acceptance=acceptance, seed=seed,
    )  # fmt: skip
    check_numbers(request)
    if not 0 <= rank < world_size:
        raise InputError(f"rank {rank} of {world_size}")
    if "torch" in sys.modules:
        raise InputError(
            "torch was imported before cosim.profile: it has looked for a GPU already",
            hint="import torch inside the `with` block, or use `cosim profile`",
        )
    session_module = import_module("cosim.profiler.inside.session")  # imports torch, later
    with TemporaryDirectory(prefix="cosim-profile-") as shared:
        session = session_module.ProfilingSession(
            {**request.as_order(), "every_layer": True, "rank": rank, "shared": shared, "device": device(gpu)}
        )
        try:
            with session.modes():
                yield
        except session_module.ProfileDoneError:
            pass
    made, _ = assemble(replace(request, ranks=(rank,)), {rank: session.answer()})
    programs = tuple(ClassProgram(p.at, merged(p.steps)) for p in made.programs)
    file.write(without_unused(replace(made, programs=programs)), Path(path))
