"""The report: one HTML file that needs nothing from outside, of one run, of two, or of a sweep."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cosim.files.text import write_text
from cosim.results.render.text import text
from cosim.results.report.decision_data import decision_data
from cosim.results.report.packing import packed
from cosim.results.report.run_data import run_data
from cosim.results.report.source import RunInMemory, source_of
from cosim.results.report.sweep_data import PageOf, no_run, sweep_data
from cosim.results.search import SearchRun
from cosim.results.stored_run import StoredRun
from cosim.results.sweep import SweepRun
from cosim.results.table import Array

_PAGE = resources.files(__package__ or "cosim.results.report") / "page"
_PLAIN = " !$&'()*+,/:;=?@[]^`{|}"


@dataclass(frozen=True)
class RunReport:
    """A page, as ``run.report()`` makes it: shows itself in a notebook, and is a file once saved.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import cosim
    >>> run = cosim.run('''
    ... topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
    ... network: fair_share
    ... jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
    ... ''')
    >>> page = run.report().save(Path(tempfile.mkdtemp()) / "report.html")
    >>> page.read_text().startswith("<!doctype html>")
    True
    """

    html: str

    def save(self, path: str | Path) -> Path:
        """Write it.

        Raises
        ------
        InputError
            The file can't be written.
        """
        return write_text(Path(path), self.html)

    def _repr_html_(self) -> str:
        style = "width:100%;height:720px;border:0"
        return f'<iframe style="{style}" srcdoc="{escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"<Report of {len(self.html):,} bytes>"


def report(runs: Sequence[RunInMemory | StoredRun]) -> RunReport:
    """The page of one run, or of two beside each other."""
    from cosim.results.compare import compare
    from cosim.results.render.summary_page import summary_page

    comparison = compare(*runs).to_json() if len(runs) == 2 else None
    heads: list[dict[str, Any]] = []
    columns: dict[str, Array] = {}
    for number, run in enumerate(runs):
        head, found = run_data(source_of(run))
        heads.append({**head, "place": str(run.directory) if isinstance(run, StoredRun) else ""})
        columns |= {f"{number}.{name}": column for name, column in found.items()}
    title = " against ".join(run.summary.name or "run" for run in runs)
    plain = "\n\n".join(text(summary_page(run.summary)) for run in runs)
    data = packed({"version": version("cosim-net"), "runs": heads, "comparison": comparison}, columns)
    return RunReport(_document(title, data, plain))


def sweep_report(sweep: SweepRun, page_of: PageOf = no_run) -> RunReport:
    """The page of a sweep; its cells open their runs where ``page_of`` says where those are."""
    data = packed({"version": version("cosim-net"), "sweep": sweep_data(sweep, page_of)}, {})
    return RunReport(_document(sweep.name, data, str(sweep)))


def decision_report(done: SearchRun) -> RunReport:
    """The page of a search."""
    data = packed({"version": version("cosim-net"), "decision": decision_data(done)}, {})
    return RunReport(_document(done.name, data, str(done)))


def _document(title: str, data: str, plain: str) -> str:
    """The page around data that :func:`~.packing.packed` made; ``plain`` is shown where scripts are off."""
    scripts = {
        f"report/{one.name}": _as_url(one.read_text("utf-8"))
        for one in sorted(_PAGE.iterdir(), key=lambda one: one.name)
        if one.name.endswith(".js")
    }
    plot = (_PAGE / "uplot" / "uPlot.iife.min.js").read_text("utf-8")
    scripts["report/uplot"] = _as_url(f"{plot}\nexport default uPlot;\n")
    parts = {
        "title": escape(title),
        "style": "".join((_PAGE / name).read_text("utf-8") for name in ("uplot/uPlot.min.css", "style.css")),
        "imports": json.dumps({"imports": scripts}),
        "licence": escape((_PAGE / "uplot" / "LICENSE").read_text("utf-8")),
        "plain": escape(plain),
        "data": data,
    }
    out = []
    for k, piece in enumerate((_PAGE / "page.html").read_text("utf-8").split("%%")):
        out.append(parts[piece] if k % 2 else piece)
    return "".join(out)


def _as_url(script: str) -> str:
    """A script as an address, shorter than base64: only what addresses or HTML can't have is escaped."""
    return "data:text/javascript," + quote(script, safe=_PLAIN)
