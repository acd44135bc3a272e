"""Shows above an example the file that it is to be saved as, which its page says in a comment.

``<!-- file: train.py -->`` before a code block is read by the tests, too (``tests/examples/pages.py``).
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

_MARKED = re.compile(r"^<!-- file: (\S+?) -->\n```(\w+)$", re.MULTILINE)


def _name_files(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = _MARKED.sub(r"```{code-block} \2\n:caption: \1\n", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("source-read", _name_files)
    return {"parallel_read_safe": True}
