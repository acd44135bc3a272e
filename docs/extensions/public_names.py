"""Public names: links to them, wherever a class was made; docstrings of attributes as they are."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

PUBLIC = ("cosim", "cosim.plugins", "cosim.testing")


def resolve(app: Sphinx, env: Any, node: Any, shown: Any) -> Any:
    """The public object of that name, where a link of the Python domain found none."""
    if node.get("refdomain") != "py":
        return None
    objects = env.get_domain("py").objects
    name = node["reftarget"].rpartition(".")[2]
    for module in PUBLIC:
        if found := objects.get(f"{module}.{name}"):
            return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, shown)
    return None


def keep_colons(_app: Sphinx, what: str, _name: str, _found: Any, _options: Any, lines: list[str]) -> None:
    """Napoleon takes what stands before an attribute's colon for its type; ours are sentences."""
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(": ", " \N{EN DASH} ") for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-docstring", keep_colons, priority=100)
    return {"parallel_read_safe": True}
