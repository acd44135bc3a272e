"""What the site's own extensions make of pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.site import missing_sphinx
from tests.inputs import ROOT

pytestmark = pytest.mark.skipif(bool(missing_sphinx()), reason=missing_sphinx())

CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "docs" / "extensions")!r})
extensions = ["myst_parser", "glossary_links", "file_names"]
myst_enable_extensions = ["deflist"]
"""
GLOSSARY = """# Glossary

rank
: One process of a job.

algorithm bandwidth (algbw), busbw
: As nccl-tests define them.

flow
: A message.
"""
PAGE = """# Ranks of a page

`rank` is code, and [a rank](https://example.org) a link. Two ranks send, one rank waits. A five-rank job has
its own; the ALGBW is shown, and work must flow.

<!-- file: small.yaml -->
```yaml
a: 1
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sphinx.application import Sphinx

    source = tmp_path_factory.mktemp("docs")
    (source / "reference").mkdir()
    for name, text in {"conf.py": CONF, "reference/glossary.md": GLOSSARY, "page.md": PAGE}.items():
        (source / name).write_text(text, encoding="utf-8")
    (source / "index.md").write_text("# A\n\n```{toctree}\nreference/glossary\npage\n```\n", encoding="utf-8")
    out = source / "out"
    app = Sphinx(source, source, out, out, "html", status=None, warningiserror=True)
    app.build()
    assert app.statuscode == 0
    return out


def test_the_first_use_of_a_term_is_a_link_to_it(site: Path) -> None:
    page = (site / "page.html").read_text(encoding="utf-8")
    found = re.findall(r'<a class="reference internal" href="(.+?)"><span class="term">(.+?)</span>', page)
    assert found == [
        ("reference/glossary.html#term-rank", "ranks"),
        ("reference/glossary.html#term-algbw", "ALGBW"),
    ]
    glossary = (site / "reference" / "glossary.html").read_text(encoding="utf-8")
    assert 'class="term"' not in glossary
    for number in ("term-rank", "term-algorithm-bandwidth", "term-algbw", "term-busbw", "term-flow"):
        assert f'id="{number}"' in glossary


def test_an_example_shows_the_name_of_its_file(site: Path) -> None:
    page = (site / "page.html").read_text(encoding="utf-8")
    assert re.search(r'caption-text">small\.yaml<.*?nt">a<', page, re.DOTALL)
