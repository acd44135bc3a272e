"""A folder of runs as pages: the list, a run, two; this machine only, and nothing but what is in the list."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from typer.testing import CliRunner

import cosim
from cosim.cli import app
from cosim.errors import InputError
from cosim.experiment.progress import RunProgress
from cosim.files.folder import PROGRESS_FILE, claimed
from cosim.results.report.folders import found_in
from cosim.results.report.server import view_server
from cosim.units import parse_time
from tests.cli.processes import PATIENCE_S
from tests.docs import site
from tests.results.report.browser import Opened, in_a_browser

TEXT = """
topology: {kind: ring, endpoints: 4, rate: 80Gbps, latency: 0ns}
network: fair_share
jobs: [{name: "<b>job</b>", workload: {kind: collective, collective: all_reduce, ranks: 4, size: 4MB}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    cosim.run(TEXT, out=root / "one & only")
    cosim.run(TEXT, {"topology.rate": "160Gbps"}, out=root / "deep" / "two")
    cosim.sweep(TEXT, {"rate": {"topology.rate": ["80Gbps", "160Gbps"]}}, out=root / "swept")
    (root / "secret.txt").write_text("secret")
    return root


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ThreadingHTTPServer]:
    with view_server(folder) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        try:
            yield one
        finally:
            one.shutdown()
            thread.join()


def get(server: ThreadingHTTPServer, path: str, host: str = "") -> tuple[int, str]:
    client = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE_S)
    client.request("GET", path, headers={"Host": host} if host else {})
    answer = client.getresponse()
    return answer.status, answer.read().decode()


def test_the_list_has_runs_and_sweeps_with_names_as_text(server: ThreadingHTTPServer, folder: Path) -> None:
    status, html = get(server, "/")
    assert status == 200
    assert "one &amp; only" in html
    assert "deep/two" in html
    assert "&lt;b&gt;job&lt;/b&gt; 600 us" in html
    assert "<b>job" not in html
    assert ">sweep<" in html
    with claimed(folder / "coming") as coming:
        assert ">under way<" in get(server, "/")[1]
        (coming / PROGRESS_FILE).write_text('{"done": 1, "total": 4, "text": "2 ms <simulated>"}')
        assert "25.0 %: 2 ms &lt;simulated&gt;" in get(server, "/")[1]
        (coming / PROGRESS_FILE).write_text("[")
        assert ">under way<" in get(server, "/")[1]
    assert ">under way<" not in get(server, "/")[1]


def test_a_run_says_how_far_it_is_while_it_runs_and_nothing_after(tmp_path: Path) -> None:
    seen = []
    many = {"jobs[0].iterations": 400, "network": "congestion_aware", "jobs[0].workload.size": "64MB"}

    def look(info: RunProgress) -> None:
        seen.append((info, {one.name: (one.kind, one.said) for one in found_in(tmp_path)}))

    cosim.run(TEXT, many, out=tmp_path / "run", progress=look)
    info, found = seen[0]
    kind, said = found["run"]
    assert kind == "under way"
    assert said.endswith(info.text)
    assert not (tmp_path / "run" / PROGRESS_FILE).exists()
    assert [one.kind for one in found_in(tmp_path)] == ["run"]


def test_cells_of_a_sweep_that_keeps_its_runs_open_them(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    axes = {"rate": {"topology.rate": ["80Gbps", "160Gbps"]}}
    sweep = cosim.Sweep(scenario=yaml.safe_load(TEXT), axes=axes, seeds=2, keep_runs=True)
    with pytest.raises(InputError, match="keep_runs: there is no folder"):
        cosim.sweep(sweep)
    done = cosim.sweep(sweep, out=tmp_path / "swept")
    for trial in done.runs:
        assert cosim.load_run(tmp_path / "swept" / trial.folder).digest == trial.digest
    page = tmp_path / "pages" / "swept.html"
    page.parent.mkdir()
    result = CliRunner().invoke(app, ["report", str(tmp_path / "swept"), "-o", str(page)])
    assert result.exit_code == 0, result.output
    if not site.missing_browser():
        browser = request.getfixturevalue("opened").page
        browser.goto(page.as_uri())
        browser.locator("#sweep table a").nth(2).click()
        browser.wait_for_selector("#answer")
        assert "300 us" in browser.inner_text("#answer")
    with view_server(tmp_path) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        html = get(one, "/show?run=swept")[1]
        names = {found.name for found in found_in(tmp_path)}
        assert {f"swept/{trial.folder}" for trial in done.runs} < names
        assert get(one, f"/show?run={quote('swept/' + done.runs[0].folder, safe='')}")[0] == 200
        one.shutdown()
    assert "<!doctype html>" in html


def test_a_run_and_two_are_shown(server: ThreadingHTTPServer) -> None:
    one, two = quote("one & only"), quote("deep/two", safe="")
    assert 'id="data"' in get(server, f"/show?run={one}")[1]
    status, both = get(server, f"/show?run={one}&run={two}")
    assert status == 200
    assert "scenario against scenario" in both
    assert get(server, "/show?run=swept")[0] == 200


def test_the_list_says_what_was_set_differently(server: ThreadingHTTPServer) -> None:
    html = get(server, "/")[1]
    assert ">topology.rate=80Gbps<" in html
    assert ">topology.rate=160Gbps<" in html
    assert "topology.endpoints" not in html


def test_several_runs_are_laid_over_one_another(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    for rate in (40, 20):
        cosim.run(TEXT, {"topology.rate": f"{rate}Gbps"}, out=folder / "more" / f"<{rate}>")
    with view_server(folder) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        names = ["one & only", "deep/two", "more/<40>", "more/<20>"]
        asked = "&".join(f"run={quote(name, safe='')}" for name in names)
        status, html = get(one, f"/show?{asked}")
        one.shutdown()
    assert status == 200
    assert "data:image/svg+xml;base64," in html
    assert "more/&lt;40&gt;" in html
    assert "<40>" not in html


def test_a_sweep_is_not_laid_over_runs(server: ThreadingHTTPServer) -> None:
    status, html = get(server, f"/show?run={quote('deep/two', safe='')}&run=swept")
    assert status == 422
    assert "a sweep is shown by itself" in html


@pytest.mark.parametrize(
    "path", ["/secret.txt", "/../secret.txt", "/show?run=../x", "/show?run=/etc", "/show"]
)
def test_nothing_else_is(server: ThreadingHTTPServer, path: str) -> None:
    status, html = get(server, path)
    assert status == 404
    assert "secret" not in html.replace("secret.txt", "")


def test_another_host_is_refused(server: ThreadingHTTPServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert get(server, "/", "example.org:80")[0] == 403
    assert get(server, "/", f"localhost:{server.server_port}")[0] == 200


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        view_server(tmp_path / "none")


@in_a_browser
def test_in_a_browser_a_run_is_searched_and_opened(server: ThreadingHTTPServer, opened: Opened) -> None:
    page = opened.page
    page.goto(f"http://127.0.0.1:{server.server_port}/")
    page.click("thead button:text('folder')")
    names = page.locator("#runs td:nth-child(2)").all_inner_texts()
    page.click("thead button:text('folder')")
    assert page.locator("#runs td:nth-child(2)").all_inner_texts() == names[::-1] != names
    page.click("thead button:text('iteration')")
    shown = [text for text in page.locator("#runs td:nth-child(6)").all_inner_texts() if text]
    times = [parse_time(text.removeprefix("<b>job</b> ")) for text in shown]
    assert times == sorted(times)
    assert len({*times}) > 1
    page.fill("#search", "deep")
    assert page.locator("#runs tr:visible").count() == 1
    page.click("#runs a:visible")
    page.wait_for_selector("html[data-shown]")
    assert "300 us" in page.inner_text("#answer")
    assert [text for text in opened.wrong if "favicon" not in text] == []
