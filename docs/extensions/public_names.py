"""Links a class that is named by its inner module to where it is public: ``cosim.plugins``, ``cosim``."""

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


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
