"""What is said of a whole training: goodput, lost time and its causes."""

from __future__ import annotations

from collections.abc import Iterator

from cosim.faults.training import Lifetime
from cosim.units import format_span

_MOST = 12


def about_training(life: Lifetime) -> Iterator[str]:
    """Lines of a page."""

    def share(time_ps: int) -> str:
        return f"{time_ps / life.lasts_ps:.2%}"

    done = life.useful_ps // life.iteration_ps
    yield (
        f"training of {format_span(life.lasts_ps)}: goodput {share(life.useful_ps)},"
        f" {done:,} iterations kept, {life.failures:,} failures"
    )
    every = f"{life.checkpoints:,} checkpoints, after {format_span(life.every_ps)} of computing each"
    yield f"  {share(life.checkpoint_ps)} went into {every}"
    if life.failures:
        yield f"  {share(life.redone_ps)} was lost and computed again, {share(life.down_ps)} the job was down"
    causes = sorted(life.causes, key=lambda one: (-one.redone_ps - one.down_ps, one.name))
    for cause in causes[:_MOST]:
        times = f"{cause.failures:,} time{'s' if cause.failures != 1 else ''}"
        lost = f"{share(cause.redone_ps)} computed again, {share(cause.down_ps)} down"
        yield f"    {cause.name}: {times}, {lost}"
    if len(causes) > _MOST:
        yield f"    ... and {len(causes) - _MOST} more causes"
