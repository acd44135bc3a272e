"""cosim: training jobs as message-level traffic, replayed closed-loop over a network simulator.

::

    import cosim

    run = cosim.run("scenarios/quickstart.yaml", {"jobs[0].iterations": 5})
    print(run)
    run.operations.to_pandas()

These names, :mod:`cosim.plugins` and :mod:`cosim.testing` are public; everything else may change without
notice. Names are imported when they are first used, so that ``import cosim`` costs nothing.

================  ======================================================================
``answers``       whether what a plug-in gives is what its base asks for: values are held against the types
                  of their fields
``context``       what everything that a scenario names is built in: where its files lie, and what it may
                  draw from
``doubts``        what can make an answer wrong by more than its interval
``errors``        one tree of errors
``plugin_file``   plug-ins from a file: ``{plugin: my.py:MyClass, its settings}``, or ``my.py:MyClass``
                  alone
``registry``      names that a scenario can use, found by entry point, loaded one at a time
``same_python``   another process of this Python, which imports what this one would
``signatures``    what a plug-in should have been, in a line: the methods that its base leaves to it, as
                  they are written
``spec``          everything that a scenario can name is a ``Spec``, found by entry point
``units``         integer picoseconds, bytes, bits per second
``written``       a spec back as plain values, with units, so that reading them gives the spec again
``captures/``     what was measured of a network's traffic, read into columns
``cli/``          the command ``cosim``
``cluster/``      WHO SHARES: several jobs on one fabric: when each starts, which endpoints it gets, how
                  fast it computes
``engine/``       WHEN: the replay, closed-loop, on SimPy's clock with a network beside it, and the records
                  it writes
``experiment/``   a question: scenarios and sweeps, and running them
``faults/``       WHAT BREAKS: links, nodes and ranks that fail, slow down and come back
``files/``        files that people write, read so that each value keeps its line
``formats/``      file formats, a folder each: what reads one (a workload, a topology, an algorithm) and
                  what writes it
``gpu/``          how long kernels take: kernels, the time of one on a GPU, what is known of how well that
                  fits
``host/``         what issues kernels: a host's processor under a framework, and how long it takes for an
                  operator
``kernel/``       FAST: what runs, in C, behind one header (``src/kernel.h``), which Python reads, too
``memory/``       memory beyond a GPU's own: how long loads and stores of it take, and who waits for whom
                  there
``models/``       models that become workloads: layers with FLOPs, bytes and parameters, cut by a
                  parallelism
``pattern/``      HOW: collectives as messages: algorithms give templates, which are proved before they are
                  timed
``processes/``    processes of your own that take part in a run: SimPy's, with events of the co-simulation
``profiler/``     from a PyTorch training script to a workload, without a GPU and without its memory
``protocol/``     network simulators elsewhere: the seam of ``simulator`` over gRPC
``results/``      what came: reads ``Records`` and computes what people and programs are shown
``synthesis/``    synthetic traces: learn a job's traces as statistics, and make others like them
``topology/``     WHERE: endpoints, switches, directed links, and how a message finds its way
``translation/``  a scenario's traffic for other simulators, and what each of them can't be told
``workload/``     WHAT: one job's work, as programs of operations for classes of ranks
================  ======================================================================
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing would be most of the cost
if TYPE_CHECKING:
    from cosim.engine.records import Records
    from cosim.engine.under_way import Waiting
    from cosim.errors import (
        AlgorithmError,
        CausalityError,
        CosimError,
        DeadlineError,
        DivergenceError,
        FeatureError,
        InfeasibleError,
        InputError,
        LaunchError,
        MismatchError,
        NetworkError,
        OverloadError,
        ProtocolError,
        RefusedError,
        RefutedError,
        RemoteError,
        ScenarioError,
        SchedulerError,
        ServerDiedError,
        SimulationError,
        StallError,
        TopologyError,
        UnreachableError,
        VersionError,
        WorkloadError,
    )
    from cosim.experiment.open import open  # noqa: A004
    from cosim.experiment.prepare import PreparedRun, PreparedRuns, PreparedScenario, prepare
    from cosim.experiment.prove import prove
    from cosim.experiment.run import run, sweep
    from cosim.experiment.scenario import Job, Scenario, load, loads
    from cosim.experiment.search.design import Design
    from cosim.experiment.search.search import search
    from cosim.experiment.simulate import Run
    from cosim.experiment.studies.perform import study
    from cosim.experiment.sweep import Sweep
    from cosim.experiment.translate import Translation, translate
    from cosim.processes.jobs import RunningJob
    from cosim.processes.links import LiveLink
    from cosim.processes.simulation import Simulation
    from cosim.processes.waiting import Outcome
    from cosim.profiler.context import profile
    from cosim.results.compare import Comparison, compare
    from cosim.results.networks import NetworkComparison
    from cosim.results.plots.plot import plot
    from cosim.results.search import SearchRun
    from cosim.results.stored_run import StoredRun, load_run
    from cosim.results.summary import Summary
    from cosim.results.sweep import SweepRun
    from cosim.results.table import Table
    from cosim.topology.graph import Topology
    from cosim.workload.program import DeviceMesh, Operation, OpKind, Peer, Program, Workload
    from cosim.workload.table import OperationTable

__version__ = "0.1.0"

_HOMES = {
    "cosim.engine.records": "Records",
    "cosim.errors": (
        "AlgorithmError CausalityError CosimError DeadlineError DivergenceError FeatureError "
        "InfeasibleError InputError LaunchError MismatchError NetworkError OverloadError ProtocolError "
        "RefusedError RefutedError RemoteError ScenarioError SchedulerError ServerDiedError SimulationError "
        "StallError TopologyError UnreachableError VersionError WorkloadError"
    ),
    "cosim.experiment.open": "open",
    "cosim.experiment.prepare": "PreparedRun PreparedRuns PreparedScenario prepare",
    "cosim.experiment.prove": "prove",
    "cosim.experiment.run": "run sweep",
    "cosim.experiment.scenario": "Job Scenario load loads",
    "cosim.experiment.search.design": "Design",
    "cosim.experiment.search.search": "search",
    "cosim.experiment.simulate": "Run",
    "cosim.experiment.studies.perform": "study",
    "cosim.experiment.sweep": "Sweep",
    "cosim.experiment.translate": "Translation translate",
    "cosim.engine.under_way": "Waiting",
    "cosim.processes.jobs": "RunningJob",
    "cosim.processes.links": "LiveLink",
    "cosim.processes.simulation": "Simulation",
    "cosim.processes.waiting": "Outcome",
    "cosim.profiler.context": "profile",
    "cosim.results.compare": "Comparison compare",
    "cosim.results.networks": "NetworkComparison",
    "cosim.results.plots.plot": "plot",
    "cosim.results.search": "SearchRun",
    "cosim.results.stored_run": "StoredRun load_run",
    "cosim.results.summary": "Summary",
    "cosim.results.sweep": "SweepRun",
    "cosim.results.table": "Table",
    "cosim.topology.graph": "Topology",
    "cosim.workload.operation": "OpKind Operation Peer Program",
    "cosim.workload.program": "DeviceMesh Workload",
    "cosim.workload.table": "OperationTable",
}
"""Where each name is made."""

__all__ = [
    "AlgorithmError",
    "CausalityError",
    "Comparison",
    "CosimError",
    "DeadlineError",
    "Design",
    "DeviceMesh",
    "DivergenceError",
    "FeatureError",
    "InfeasibleError",
    "InputError",
    "Job",
    "LaunchError",
    "LiveLink",
    "MismatchError",
    "NetworkComparison",
    "NetworkError",
    "OpKind",
    "Operation",
    "OperationTable",
    "Outcome",
    "OverloadError",
    "Peer",
    "PreparedRun",
    "PreparedRuns",
    "PreparedScenario",
    "Program",
    "ProtocolError",
    "Records",
    "RefusedError",
    "RefutedError",
    "RemoteError",
    "Run",
    "RunningJob",
    "Scenario",
    "ScenarioError",
    "SchedulerError",
    "SearchRun",
    "ServerDiedError",
    "Simulation",
    "SimulationError",
    "StallError",
    "StoredRun",
    "Summary",
    "Sweep",
    "SweepRun",
    "Table",
    "Topology",
    "TopologyError",
    "Translation",
    "UnreachableError",
    "VersionError",
    "Waiting",
    "Workload",
    "WorkloadError",
    "compare",
    "load",
    "load_run",
    "loads",
    "open",
    "plot",
    "prepare",
    "profile",
    "prove",
    "run",
    "search",
    "study",
    "sweep",
    "translate",
]


if not TYPE_CHECKING:  # so that they know a name that isn't there

    def __getattr__(name):
        from importlib import import_module

        for module, names in _HOMES.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module 'cosim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "plugins", "testing"]
