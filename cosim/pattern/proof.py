"""An algorithm proved on its own, and what was proved, in words: ``cosim prove ring --collective ...``."""

from __future__ import annotations

from cosim.pattern.config import CollectiveConfig
from cosim.pattern.contract import Algorithm
from cosim.pattern.happens_before import RACE_LIMIT
from cosim.pattern.planner import Planner
from cosim.pattern.template import Collective, Template, has_data


def prove_plan(
    algorithm: Algorithm, collective: Collective, num_ranks: int, size_bytes: int, *, root: int = 0
) -> str:
    """Prove every template of an operation.

    Raises
    ------
    AlgorithmError
        As :func:`cosim.pattern.prove.prove`.
    """
    planner = Planner(CollectiveConfig.model_validate({collective.value: algorithm}))
    plan = planner.plan(collective, num_ranks, size_bytes, root=root)
    return "\n".join(_of_template(phase.template) for phase in plan.chunks[0])


def _of_template(t: Template) -> str:
    chunks = f"{t.num_chunks} chunks, " if t.num_chunks else ""
    chunks += f"{t.num_scratch} of scratch, " if t.num_scratch else ""
    between = t.src != t.dst
    channels = int(t.channel[between].max(initial=-1)) + 1
    if not has_data(t):
        how = "only that it ends: its messages carry no chunks, so its data was not checked"
    elif t.num_flows <= RACE_LIMIT or not t.num_chunks:
        how = "every order of messages gives this result"
    else:
        how = "the earliest and the latest order give this result, and in a small group every order"
    proved = "proved" if has_data(t) else "deadlock-free, data not checked"
    return (
        f"{proved}: {t.name}, {t.collective.value} over {t.num_ranks} ranks\n"
        f"  {chunks}{t.num_messages} messages in {int(t.block_repeat[1:-1].sum())} steps on {channels} "
        f"channel{'s' if channels != 1 else ''}, {t.total_bytes} bytes\n"
        f"  {how}"
    )
