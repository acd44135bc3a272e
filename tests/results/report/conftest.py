"""A browser that the tests here share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs import site
from tests.results.report.browser import Opened


@pytest.fixture(scope="package")
def opened() -> Iterator[Opened]:
    """A page in a browser."""
    with site.browser(1440) as page:
        yield Opened(page)
