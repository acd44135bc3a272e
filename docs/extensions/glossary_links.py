"""The glossary's terms: each is a target, and its first use on every other page links to it.

No extension that is kept does so: those there are show pop-ups for terms that a page marks by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_id

GLOSSARY = "reference/glossary"
_NOT_LINKED = {
    *("completion", "control", "detection", "event", "flow", "fold", "grant", "horizon", "host", "instant"),
    *("interval", "permutation", "program", "proved", "stage", "stale"),
}
"""Words that pages also use in their everyday sense, which no program tells apart."""
_LINKED_PAGES = re.compile(r"(?!changelog|contributing/words|gallery/|reference/glossary)")
_LEAVE = (nodes.reference, nodes.literal, nodes.title, addnodes.pending_xref, addnodes.desc_signature)


def terms_of(text: str) -> list[str]:
    """The terms that one line of the glossary defines: ``algorithm bandwidth (algbw)`` are two."""
    return [one.strip() for one in re.split(r"[,()]", text) if one.strip()]


@cache
def _pattern(path: Path) -> re.Pattern[str]:
    lines = re.findall(r"^(\S.*)\n: ", path.read_text(encoding="utf-8"), re.MULTILINE)
    terms = {term for line in lines for term in terms_of(line)} - _NOT_LINKED
    listed = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
    return re.compile(rf"(?<![-\w])({listed})(?:e?s)?\b", re.IGNORECASE)


class GlossaryTerms(SphinxTransform):
    """Makes targets of the glossary's terms, and links of their first uses on other pages."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Docutils calls this for each page."""
        if self.env.docname == GLOSSARY:
            self._note_terms()
        elif _LINKED_PAGES.match(self.env.docname):
            self._link()

    def _note_terms(self) -> None:
        standard = self.env.domains.standard_domain
        for term in self.document.findall(nodes.term):
            for name in terms_of(term.astext()):
                number = make_id(self.env, self.document, "term", name)
                term["ids"].append(number)
                self.document.note_explicit_target(term)
                standard.note_object("term", name.lower(), number, location=term)

    def _link(self) -> None:
        pattern, seen = _pattern(Path(self.env.srcdir, f"{GLOSSARY}.md")), set[str]()
        for paragraph in list(self.document.findall(nodes.paragraph)):
            for text in list(paragraph.findall(nodes.Text)):
                if not _is_left(text):
                    text.parent.replace(text, list(_pieces(text.astext(), pattern, seen, self.env.docname)))


def _is_left(text: nodes.Text) -> bool:
    node: Any = text.parent
    while node is not None:
        if isinstance(node, _LEAVE) or "sd-card" in node.get("classes", ()):
            return True
        node = node.parent
    return False


def _pieces(text: str, pattern: re.Pattern[str], seen: set[str], page: str) -> Iterator[nodes.Node]:
    at = 0
    for found in pattern.finditer(text):
        term = found[1].lower()
        if term in seen:
            continue
        seen.add(term)
        yield nodes.Text(text[at : found.start()])
        link = addnodes.pending_xref(
            "", refdomain="std", reftype="term", reftarget=term, refexplicit=True, refwarn=True, refdoc=page
        )
        link += nodes.inline("", found[0], classes=["term"])
        yield link
        at = found.end()
    yield nodes.Text(text[at:])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_transform(GlossaryTerms)
    return {"parallel_read_safe": True}
