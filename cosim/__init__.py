"""cosim: training jobs as message-level traffic, replayed closed-loop over a network simulator.

::

    import cosim

    run = cosim.run("scenarios/quickstart.yaml", set={"jobs[0].iterations": 5})
    print(run.summary.jobs[0].iteration_mean_ps)

Names are imported when they are first used, so that ``import cosim`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosim.errors import CosimError, InputError, NetworkError, SimulationError
    from cosim.experiment.run import Run, run
    from cosim.experiment.scenario import Job, Scenario, load, loads
    from cosim.experiment.translate import translate
    from cosim.profiler.context import profile
    from cosim.results.store import load as load_run

__version__ = "0.1.0"

_HOMES = {
    "CosimError": "cosim.errors",
    "InputError": "cosim.errors",
    "NetworkError": "cosim.errors",
    "SimulationError": "cosim.errors",
    "Run": "cosim.experiment.run",
    "run": "cosim.experiment.run",
    "Job": "cosim.experiment.scenario",
    "Scenario": "cosim.experiment.scenario",
    "load": "cosim.experiment.scenario",
    "loads": "cosim.experiment.scenario",
    "load_run": "cosim.results.store:load",
    "translate": "cosim.experiment.translate",
    "profile": "cosim.profiler.context:profile",
}

__all__ = [
    "CosimError",
    "InputError",
    "Job",
    "NetworkError",
    "Run",
    "Scenario",
    "SimulationError",
    "load",
    "load_run",
    "loads",
    "profile",
    "run",
    "translate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cosim' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
