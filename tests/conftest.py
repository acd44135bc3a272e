"""What every room's tests may ask for."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cosim.experiment.executors import local
from tests.formats.chakra import small_traces as traces
from tests.inputs import ROOT

# What tests start imports the cosim that they import, wherever it is started: an installed copy would be
# another one.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
# And it finds the bytecode that others wrote: without, each process compiles 250 files, a sixth of its time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# How long an example takes, or is drawn, says how busy the machine is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end, a million objects: each search for garbage went
    through all of them, a tenth of the suite's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_runtest_logreport(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Where COSIM_TEST_SKIPPED names a file, a line for each test or module that skips: ``pytest @FILE``
    runs them when what they need is there.
    """
    file = os.environ.get("COSIM_TEST_SKIPPED")
    if file and report.skipped and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(file).open("a", encoding="utf-8") as skipped:
            skipped.write(f"{report.nodeid}\n")


pytest_collectreport = pytest_runtest_logreport


@pytest.fixture(scope="session", autouse=True)
def _others_have_the_other_cores() -> Iterator[None]:
    """The suite has a process for each core: a sweep begins others where a test says how many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "num_cores", lambda: 1)
        yield


@pytest.fixture(scope="session")
def small_traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces of :mod:`tests.formats.chakra.small_traces`."""
    return traces.write(tmp_path_factory.mktemp("inputs"))
