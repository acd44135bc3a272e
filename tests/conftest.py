"""What every room's tests may ask for."""

from pathlib import Path

import pytest

from tests.formats.chakra import small_traces as traces


@pytest.fixture(scope="session")
def small_traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces of :mod:`tests.formats.chakra.small_traces`."""
    return traces.write(tmp_path_factory.mktemp("inputs"))
