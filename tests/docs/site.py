"""This project's site, built and served, and a browser to look at it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cli.processes import PATIENCE_S
from tests.inputs import ROOT

WIDTHS = {"desktop": 1440, "phone": 390}
"""Pixels."""


def missing_sphinx() -> str:
    """What to install so that the site can be built; nothing where it can."""
    lacking = [name for name in ("sphinx", "myst_parser", "furo") if not importlib.util.find_spec(name)]
    return f"no {', '.join(lacking)}: pip install '.[docs]'" if lacking else ""


def chromium() -> str | None:
    """Where Debian's Chromium is, or another one."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def missing_browser() -> str:
    """What to install so that pages can be looked at; nothing where they can."""
    if importlib.util.find_spec("playwright") is None:
        return "no playwright: pip install '.[docs]'"
    return "" if chromium() else "no Chromium: apt-get install -y chromium"


def build(out: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as contributors do: every warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", str(ROOT / "docs"), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which ``folder`` is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def browser(width: int) -> Iterator[Any]:
    """A page of a headless Chromium, so many pixels wide."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Chromium's sandbox needs what a container lacks; only our own pages are opened.
        opened = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        try:
            page = opened.new_page(viewport={"width": width, "height": 900})
            page.set_default_timeout(1000 * PATIENCE_S)
            yield page
        finally:
            opened.close()
