"""What each model leaves out: the "Not modelled" of every module's docstring, in one page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from gallery_pages import put
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
_SAID = re.compile(r"^(?:.*?)(Not modelled[:, ].*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)


def limits() -> Iterator[tuple[str, str, str]]:
    """(module, what it is, what it does not model) of each module that says so."""
    for path in sorted((ROOT / "cosim").rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if found := _SAID.search(text):
            first = " ".join(text.split("\n\n")[0].split())
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), first, " ".join(found[1].split())


def page() -> str:
    """The page's text."""
    parts = [
        "# What each model does not model\n",
        "Every model says at the end of its docstring what it leaves out; this page is made of those ends. "
        "How far what *is* modelled can be trusted stands in {doc}`../../validation/index`.\n",
    ]
    for module, first, said in limits():
        parts.append(f"`{module}`\n: {_prose(first)} [{_prose(said)}]{{.takes}}\n")
    return "\n".join(parts)


def _prose(text: str) -> str:
    """ReStructuredText's code and roles as Markdown's."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text.replace("``", "`"))
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(one if one.startswith("`") else re.sub(r"([<*_\[\]])", r"\\\1", one) for one in parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    target = Path(app.srcdir) / "reference" / "names" / "limits.md"
    app.connect("builder-inited", lambda _: put(target, page()))
    return {"parallel_read_safe": True}
