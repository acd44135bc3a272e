"""``cosim view``: a folder's runs as pages of a server that listens on this machine's loopback only.

It shows what it has found in the folder and nothing else: an address names a run of the list, never a path.
Requests for another host are refused, so that a page from elsewhere can't ask through the browser.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from cosim.errors import InputError
from cosim.results.plots.charts import MOST_LINES
from cosim.results.plots.plot import save_plots
from cosim.results.report.document import report, sweep_report
from cosim.results.report.folders import FoundFolder, found_in, set_differently
from cosim.results.report.sweep_data import load_sweep
from cosim.results.stored_run import load_run
from cosim.results.sweep import Trial

LOOPBACK = "127.0.0.1"
_COLUMNS = (
    ("folder", "text long"),
    ("date", "text optional"),
    ("run", "text long optional"),
    ("set differently", "text long"),
    ("iteration", "long"),
    ("exposed", ""),
    ("digest", "text optional"),
)
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' data:; img-src data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def view_server(root: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of a folder, which listens; port 0 takes a free one.

    Raises
    ------
    InputError
        There is no such folder, or the port is taken.
    """
    found_in(root)
    try:
        return ThreadingHTTPServer((LOOPBACK, port), partial(_ViewRequest, root))
    except OSError as error:
        raise InputError(f"can't listen on port {port}: {error.strerror or error}") from error


class _ViewRequest(BaseHTTPRequestHandler):
    """The list, a run, two runs."""

    def __init__(self, root: Path, *args: Any) -> None:
        self._root = root
        super().__init__(*args)

    def do_GET(self) -> None:
        """Answer with a page."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in (LOOPBACK, "localhost"):
            return self._answer(HTTPStatus.FORBIDDEN, _message("This server answers this machine only."))
        asked = urlsplit(self.path)
        try:
            if asked.path == "/":
                return self._answer(HTTPStatus.OK, _list(self._root, found_in(self._root)))
            if asked.path == "/show":
                return self._show(parse_qs(asked.query).get("run", []))
        except InputError as error:
            return self._answer(HTTPStatus.UNPROCESSABLE_ENTITY, _message(str(error)))
        return self._answer(HTTPStatus.NOT_FOUND, _message("There is no such page."))

    def _show(self, names: list[str]) -> None:
        found = {one.name: one for one in found_in(self._root)}
        chosen = [found[name] for name in names[:MOST_LINES] if name in found]
        if not chosen:
            return self._answer(HTTPStatus.NOT_FOUND, _message("There is no such run; choose one or two."))
        if len(chosen) > 1 and any(one.kind == "sweep" for one in chosen):
            raise InputError("a sweep is shown by itself; choose runs to lay over one another")
        if chosen[0].kind == "sweep":
            name, folder = chosen[0].name, chosen[0].path
            page = sweep_report(
                load_sweep(folder), partial(_address, found, "" if name == "." else f"{name}/")
            )
        elif len(chosen) > 2:
            return self._answer(HTTPStatus.OK, _overlay(chosen))
        else:
            page = report([load_run(one.path) for one in chosen])
        return self._answer(HTTPStatus.OK, page.html)

    def _answer(self, status: HTTPStatus, html: str) -> None:
        content = html.encode("utf-8", "backslashreplace")
        self.send_response(status)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", _POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""


def _address(found: Collection[str], prefix: str, trial: Trial) -> str:
    """The address of a trial's run that the list has."""
    name = prefix + trial.folder
    return f"/show?run={quote(name, safe='')}" if name in found else ""


def _message(text: str) -> str:
    return _page("cosim", f"<h1>cosim</h1><p>{escape(text)}</p><p><a href='/'>All runs</a></p>")


def _list(root: Path, found: list[FoundFolder]) -> str:
    settings = set_differently(found)
    rows = "".join(_row(one, settings.get(one.name, "")) for one in found)
    titles = "".join(
        f'<th class="{kind}"><button type="button" class="plain">{head}</button></th>'
        for head, kind in _COLUMNS
    )
    none = (
        "<p>No run yet: <code>cosim run S --out FOLDER</code> writes one; the list looks again by itself.</p>"
    )
    return _page(
        f"Runs in {root.name or root}",
        f"<h1>Runs in {escape(str(root))}</h1>"
        '<form action="/show"><p><input id="search" type="search" placeholder="Search" aria-label="Search"> '
        "<button>Show one, compare two, overlay up to eight</button></p>"
        f'<div class="wide"><table><thead><tr><th></th>{titles}</tr></thead>'
        f'<tbody id="runs">{rows}</tbody></table></div>'
        f"{'' if found else none}</form>",
    )


def _overlay(chosen: Sequence[FoundFolder]) -> str:
    """Several runs on one axis each: completion times, and throughput."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "overlay.svg"
        save_plots([one.path for one in chosen], ["cdf", "throughput"], path, columns=2)
        drawn = base64.b64encode(path.read_bytes()).decode("ascii")
    settings = set_differently(chosen)
    names = "".join(
        f"<li>{escape(': '.join(filter(None, (one.name, one.iteration, settings.get(one.name)))))}</li>"
        for one in chosen
    )
    seeds = (
        "Runs that differ only by their seed are one line: their mean, in a band from the least to the most."
    )
    alt = "Completion times of messages, and throughput over time"
    image = f'<div class="wide"><img alt="{alt}" src="data:image/svg+xml;base64,{drawn}"></div>'
    return _page(
        "Overlay",
        f"<h1>Overlay</h1>{image}<p class='note'>{seeds}</p><ul>{names}</ul><p><a href='/'>All runs</a></p>",
    )


def _row(one: FoundFolder, settings: str) -> str:
    name = escape(one.name)
    shown = one.kind in ("run", "sweep")
    box = f'<input type="checkbox" name="run" value="{name}" aria-label="{name}">' if shown else ""
    link = f'<a href="/show?run={quote(one.name, safe="")}">{name}</a>' if shown else name
    date = datetime.fromtimestamp(one.changed_s).strftime("%Y-%m-%d %H:%M") if one.changed_s else ""
    said = escape(one.said) if one.kind == "run" else f"<b>{one.kind}</b> {escape(one.said)}"
    texts = (link, date, said, *map(escape, (settings, one.iteration, one.exposed, one.digest)))
    cells = "".join(
        f'<td class="{kind}"{_sorted_by(one, head)}>{text}</td>'
        for (head, kind), text in zip(_COLUMNS, texts, strict=True)
    )
    return f"<tr><td>{box}</td>{cells}</tr>"


def _sorted_by(one: FoundFolder, head: str) -> str:
    """Times are sorted by how long they are, not by their texts."""
    return f' data-by="{one.iteration_ps:.0f}"' if head == "iteration" and one.iteration else ""


def _page(title: str, body: str) -> str:
    files = resources.files(__package__) / "page"
    style = (files / "style.css").read_text("utf-8")
    script = (files / "list.mjs").read_text("utf-8")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f'<body><main class="list">{body}</main><script type="module">{script}</script></body></html>'
    )
