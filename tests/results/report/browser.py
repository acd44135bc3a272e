"""Pages opened in a browser, and what goes wrong on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs import site

in_a_browser = pytest.mark.skipif(bool(site.missing_browser()), reason=site.missing_browser() or "it is here")


class Opened:
    """A page of a browser, and what went wrong on it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.wrong: list[str] = []
        page.on("console", lambda one: self.wrong.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))

    def show(self, html: str, folder: Path, *, wide: int = 1440, scheme: str = "light") -> Any:
        """The page, opened from a file, once it has drawn itself."""
        path = folder / "report.html"
        path.write_text(html, encoding="utf-8")
        self.page.set_viewport_size({"width": wide, "height": 900 if wide > 600 else 844})
        self.page.emulate_media(color_scheme=scheme)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-shown]")
        # What follows from sizes, as which tables can be scrolled, is known a frame later.
        self.page.evaluate(
            "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
        )
        return self.page
