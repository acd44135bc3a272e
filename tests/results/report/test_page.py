"""The page in a browser: no error on the console, its numbers are the summary's, what people do works."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import cosim
from cosim.results.link_users import note_link_users
from cosim.results.report.document import report
from cosim.results.report.run_data import run_data
from cosim.results.report.source import source_of
from cosim.units import format_time
from tests.examples.answers import missing_simulator
from tests.inputs import ROOT
from tests.results.report.browser import Opened, in_a_browser

NASTY = "<script>document.title = 'run'</script>"
TEXT = f"""
name: "{NASTY}"
topology: {{kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 3, rate: 100Gbps, latency: 500ns}}
network: {{model: congestion, control: dctcp}}
record: {{messages: true, queues: "* -> *", rates: [two, "gpu0 -> *"], every: 100us}}
jobs:
  - name: "{NASTY}"
    workload: {{kind: periodic, compute: 1ms, size: 25MB, communication: incast, ranks: 3}}
    iterations: 3
  - {{name: two, workload: {{kind: periodic, compute: 1ms, size: 12MB}}, iterations: 3}}
"""


@pytest.fixture(scope="module")
def run() -> cosim.Run:
    done = cosim.run(TEXT)
    note_link_users(done.records)
    return done


def test_what_names_say_is_never_markup(run: cosim.Run) -> None:
    html = report([run]).html
    assert "document.title = 'run'</script>" not in html
    assert "&lt;script&gt;" in html  # the title, and the page for those without scripts


def test_an_empty_page_is_small_and_asks_for_nothing() -> None:
    small = cosim.run(
        "topology: {kind: ring, endpoints: 2, rate: 80Gbps, latency: 0ns}\nnetwork: fair_share\n"
        "jobs: [{workload: {kind: collective, collective: all_reduce, ranks: 2, size: 4MB}}]\n"
    )
    html = report([small]).html
    assert len(html) < 300_000
    assert re.findall(r"(?:src|href)=\"?(?:https?:)?//", html) == []


def test_a_notebook_shows_it_in_a_frame_of_its_own(run: cosim.Run) -> None:
    html = run.report()._repr_html_()
    assert html.startswith("<iframe")
    assert "<script" not in html


@in_a_browser
def test_a_run_is_shown_with_the_summarys_numbers(run: cosim.Run, opened: Opened, tmp_path: Path) -> None:
    page = opened.show(report([run]).html, tmp_path)
    assert page.inner_text("h1") == NASTY
    assert page.title() == NASTY
    headings = page.locator("h2").all_inner_texts()
    assert headings == ["Answer", "Timeline", "Critical path", "Fabric", "Network", "Jobs", "Scenario"]
    answer = page.inner_text("#answer")
    for job in run.summary.jobs:
        assert format_time(job.iteration_mean_ps or 0) in answer
        assert f"{100 * job.exposed.share:.1f} %" in answer
    assert format_time(run.summary.fct.p99_ps if run.summary.fct else 0) in page.inner_text("#network")
    assert opened.wrong == []


@in_a_browser
def test_zoom_slider_and_link_do_what_they_say(run: cosim.Run, opened: Opened, tmp_path: Path) -> None:
    page = opened.show(report([run]).html, tmp_path)
    canvas = page.locator("#timeline canvas[tabindex]")
    before = canvas.evaluate("node => node.toDataURL()")
    canvas.focus()
    page.keyboard.press("+")
    assert canvas.evaluate("node => node.toDataURL()") != before
    page.locator("#fabric input").fill("3")
    assert " to " in page.inner_text("#fabric output")
    page.locator("#fabric tr.link").first.click()
    assert "Between " in page.inner_text("#fabric")
    page.wait_for_selector("#fabric .u-over")
    assert "Who uses it" in page.inner_text("#fabric")
    page.locator("#path tr.link").first.click()
    page.locator("#timeline select").select_option("0 0")
    assert opened.wrong == []


@in_a_browser
def test_queues_rates_and_messages_are_shown(run: cosim.Run, opened: Opened, tmp_path: Path) -> None:
    page = opened.show(report([run]).html, tmp_path)
    assert {"Queues over time", "Rates over time", "Windows over time"} <= {
        *page.locator("#network h3").all_inner_texts()
    }
    longest = run.queues.link[run.queues.queue_bytes.argmax()].replace("->", "→")
    page.locator("#network select").first.select_option(longest)
    assert "Packets between two times" in page.locator("#network h3").all_inner_texts()
    page.locator("#fabric select").select_option("queue over time")
    assert "100 %: " in page.inner_text("#fabric")
    page.locator("#fabric input").fill("2")
    canvas = page.locator("#timeline canvas[tabindex]")
    before = canvas.evaluate("node => node.clientHeight")
    page.get_by_label("messages").check()
    assert canvas.evaluate("node => node.clientHeight") > before
    texts = []
    for y in range(30, canvas.evaluate("node => node.clientHeight"), 6):
        canvas.hover(position={"x": 800, "y": y})
        texts.append(page.locator(".tip").inner_text() if page.locator(".tip:visible").count() else "")
    assert any(text.startswith(("25 MB to", "12 MB to")) for text in texts)
    assert opened.wrong == []


def test_series_of_a_page_are_those_of_the_run(run: cosim.Run) -> None:
    head, columns = run_data(source_of(run))
    links, times = head["series"]["links"], len(columns["series_at"])
    names = [run.links.name[link] for link in links]
    assert sorted(names) == sorted({*run.queues.link})
    for k, name in enumerate(names):
        mine = run.queues.link == name
        line = slice(k * times, (k + 1) * times)
        assert columns["series_queue"][line].max() == round(run.queues.queue_bytes[mine].max())
        assert columns["series_marks"][line].sum() == pytest.approx(run.queues.marks[mine].sum(), abs=times)
    # Of ranks that did the same at the same time one is shown, and so are its messages.
    alike = np.array([lane["alike"] for lane in head["timeline"]["lanes"]])[columns["message_lane"]]
    sent = [(columns[f"message_{name}"] * alike).sum() for name in ("size", "time")]
    messages = run.messages
    assert sent == [messages.size_bytes.sum(), (messages.end_ps - messages.start_ps).sum()]


@in_a_browser
def test_jobs_have_their_slowdowns_where_they_were_run_alone(opened: Opened, tmp_path: Path) -> None:
    run = cosim.run(ROOT / "scenarios" / "two-jobs.yaml")
    run.study("alone")
    page = opened.show(run.report().html, tmp_path)
    for job in run.summary.jobs:
        assert run.alone is not None
        assert f"{(job.iteration_mean_ps or 0) / run.alone[job.name]:.3f} x" in page.inner_text("#jobs")
    assert "Who shares" in page.inner_text("#jobs")
    assert opened.wrong == []


@in_a_browser
def test_a_queue_begins_with_who_waited(opened: Opened, tmp_path: Path) -> None:
    run = cosim.run(
        "topology: {kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}\nnetwork: fair_share\n"
        "queue: {order: fifo}\njobs:\n"
        + "".join(
            f"- {{name: {name}, workload: {{kind: periodic, compute: 1ms, size: 1MB}}, iterations: 2}}\n"
            for name in ("first", "second", "third")
        )
    )
    page = opened.show(run.report().html, tmp_path)
    found = run.summary.scheduling
    assert found is not None
    waited = found.waited_ps["third"]
    assert 0 < found.waited_ps["second"] < waited
    assert f"2 of 3 jobs waited, mean {format_time(round(waited / 2))}, at most {format_time(waited)}" in (
        page.inner_text("#answer")
    )
    assert format_time(waited) in page.inner_text("#jobs table")
    assert opened.wrong == []


@in_a_browser
def test_two_runs_begin_with_a_sentence(run: cosim.Run, opened: Opened, tmp_path: Path) -> None:
    other = cosim.run(TEXT, {"topology.rate": "50Gbps"})
    page = opened.show(report([run, other]).html, tmp_path)
    said = cosim.compare(run, other).said
    assert said is not None
    assert said.sentence in page.inner_text("#comparison")
    assert "topology.rate" in page.inner_text("#comparison")
    canvases = page.locator("#timeline canvas[tabindex]")
    assert canvases.count() == 2
    before = [one.evaluate("node => node.toDataURL()") for one in canvases.all()]
    page.locator("#comparison tr.link").first.click()
    assert all(
        one.evaluate("node => node.toDataURL()") != old
        for one, old in zip(canvases.all(), before, strict=True)
    )
    assert page.locator("#comparison .pair .bar").count() == 4  # two of each job
    page.locator("#timeline select").select_option("0 1")
    ticks = []
    for button in page.locator("#timeline .tools button:text('SVG')").all():
        with page.expect_download() as saved:
            button.click()
        ticks.append(re.findall(r">([\d.]+ ms)<", Path(saved.value.path()).read_text("utf-8")))
    assert ticks[0] == ticks[1] != []  # both on one scale
    assert "[object" not in page.inner_text("main")
    for title in ("How the critical path moved", "Operations that changed most", "Links that changed most"):
        assert title in page.inner_text("#comparison")
    assert opened.wrong == []


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(
    run: cosim.Run, opened: Opened, tmp_path: Path, scheme: str
) -> None:
    page = opened.show(report([run]).html, tmp_path, wide=390, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.wrong == []


@in_a_browser
def test_a_sweep_is_shown_with_its_cells(opened: Opened, tmp_path: Path) -> None:
    axes = {"rate": {"topology.rate": ["100Gbps", "50Gbps"]}, "record": {"record.every": ["1ms", "2ms"]}}
    done = cosim.sweep(TEXT, axes, measures=["iteration", "exposed"])
    page = opened.show(done.report().html, tmp_path)
    text = page.inner_text("#sweep")
    for mean in (cell["mean"] for cell in done.to_json()["cells"]):
        assert f"{float(f'{mean:.5g}'):g}" in text
    assert page.locator("#sweep .panels g circle").count() == 8  # a cell in a panel of each measure
    for group in range(2):
        panel = page.locator("#sweep .panels").first.locator("svg").nth(group)
        drawn = panel.locator("circle").evaluate_all(
            "all => all.map((one) => Number(one.getAttribute('cx')))"
        )
        assert drawn == sorted(drawn)  # the best first
    first = page.locator("#sweep td").first
    before = first.inner_text()
    page.locator("#sweep th button").nth(3).click()
    page.locator("#sweep th button").nth(3).click()
    assert page.locator("#sweep th").nth(3).get_attribute("aria-sort") == "descending"
    assert first.inner_text() != before
    assert opened.wrong == []


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("name", ["quickstart", "two-jobs", "mltcp", "hybrid-ns3", "llama3-70b"])
def test_every_part_of_a_scenarios_report_is_shown(name: str, opened: Opened, tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / f"{name}.yaml"
    if missing := missing_simulator(scenario):
        pytest.skip(f"it needs ns-3: apt-get install -y {missing}")
    done = cosim.run(scenario)
    page = opened.show(done.report().html, tmp_path)
    for part in ("answer", "timeline", "path", "fabric", "network", "settings"):
        assert page.locator(f"#{part}").is_visible()
    answer = page.inner_text("#answer")
    for job in done.to_json()["jobs"][:8]:
        assert format_time(job["iteration_mean_ps"]) in answer
        assert f"Limited by {job['limit']}." in answer
        if job["flops_utilisation"] is not None:
            assert f"{100 * job['flops_utilisation']:.1f} %" in answer
            assert f"{round(job['tokens_per_gpu_s']):,}" in answer
    page.locator("#fabric tr.link").first.click()
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        # Figures are drawn anew in a frame of their own.
        page.wait_for_function("most => document.documentElement.scrollWidth <= most", arg=width)
    assert opened.wrong == []


@in_a_browser
def test_a_training_begins_with_its_goodput_and_each_cause(opened: Opened, tmp_path: Path) -> None:
    run = cosim.run(
        "topology: {kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}\nnetwork: fair_share\n"
        "events:\n- {rank: 0, fails: true, at: 2d, every: 5d, cause: fan}\n"
        f"- {{rank: 1, fails: true, mtbf: 3d, repair: 1h, cause: '{NASTY.replace(chr(39), '')}'}}\n"
        "jobs: [{workload: {kind: operations, world_size: 2, programs: [{operations:"
        " [{name: one, kind: compute, duration: 6s}]}]},"
        " training: {lasts: 30d, restart: 20min, checkpoint: {every: 1h, time: 30s}}}]\n"
    )
    life = run.summary.jobs[0].training
    assert life is not None
    assert [sum(getattr(one, key) for one in life.setbacks) for key in ("redone_ps", "down_ps")] == [
        life.redone_ps,
        life.down_ps,
    ]
    page = opened.show(run.report().html, tmp_path)
    assert f"Goodput is {100 * life.goodput:.1f} %" in page.inner_text("#answer .said >> nth=0")
    rows = page.locator("#answer tbody tr").all_inner_texts()
    assert [int(row.split("\t")[2]) for row in rows] == [
        cause.failures for cause in sorted(life.causes, key=lambda one: -one.redone_ps - one.down_ps)
    ]
    assert page.locator("#answer svg title").count() >= 2 * life.failures
    assert page.locator("#answer svg text").all_text_contents()[:10:2] == [f"week {k}" for k in range(1, 6)]
    assert page.locator("#fabric").count() == 0  # nothing was sent
    assert opened.wrong == []


EVENTS = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 100Gbps, latency: 500ns}
network: fair_share
events:
- {link: leaf0 <-> spine1, down: true, at: 12ms, until: 20ms}
- {rank: 1, slow: 3, at: 2ms, until: 3ms, every: 5ms, times: 2}
- {node: spine0, rate: 50Gbps, mtbf: 5ms, repair: 1ms}
jobs: [{workload: {kind: periodic, compute: 1ms, size: 50MB, ranks: 4}, iterations: 6}]
"""


def test_events_are_those_of_the_run_and_cost_what_its_iterations_took_longer() -> None:
    run = cosim.run(EVENTS)
    down, slow, drawn = run_data(source_of(run))[0]["events"]
    assert (down["name"], down["what"], slow["what"]) == ("leaf0 <-> spine1", "down", "3 x as slow")
    assert down["spans"] == [[12_000_000_000, 20_000_000_000]]
    names = {run.links.name[link] for link in down["links"]}
    assert names == {"leaf0 -> spine1", "spine1 -> leaf0"}
    assert slow["links"] == []
    assert len(drawn["spans"]) > 2
    assert all(0 < b - a <= 3_000_000_000 for a, b in drawn["spans"])
    clean = cosim.run(EVENTS, {"events": []})
    assert run_data(source_of(clean))[0]["events"] == []
    one = cosim.run(EVENTS, {"events": [{"link": "gpu0 -> leaf0", "rate": "50Gbps", "at": "12ms"}]})
    [cost] = run_data(source_of(one))[0]["events"][0]["jobs"]
    assert cost["base_share"] == 0
    assert cost["base_ps"] == clean.iterations.duration_ps[0]
    assert cost["hit_ps"] == one.iterations.duration_ps[-1] > cost["base_ps"]


@in_a_browser
def test_an_event_is_told_at_the_top_and_drawn_where_time_is(opened: Opened, tmp_path: Path) -> None:
    page = opened.show(cosim.run(EVENTS).report().html, tmp_path)
    assert "leaf0 <-> spine1 down, 12 ms to 20 ms" in page.inner_text("#answer")
    line = page.locator("#fabric path[stroke-dasharray='2 5']")
    assert line.count() == 0
    dashed = set()
    for k in range(1, int(page.locator("#fabric input").get_attribute("max")) + 1):
        page.locator("#fabric input").fill(str(k))
        dashed.add(line.count())
    assert dashed == {0, 1}
    with page.expect_download() as saved:
        page.locator("#network h3:text('Goodput') + div button:text('SVG')").click()
    drawn = Path(saved.value.path()).read_text("utf-8")
    assert "leaf0 &lt;-&gt; spine1 down" in drawn
    assert ">Goodput<" in drawn
    assert re.search(r'd="M[\d. ]+H[\d.]+V', drawn)  # steps, as on the screen
    with page.expect_download() as saved:
        page.locator("#network h3:text('Goodput') + div button:text('CSV')").click()
    head, first, *_ = Path(saved.value.path()).read_text("utf-8").splitlines()
    assert head == "time_ps,all endpoints_bps"
    assert re.fullmatch(r"\d+,\d+", first)
    assert opened.wrong == []


@in_a_browser
def test_on_paper_figures_are_as_wide_as_it_and_light(run: cosim.Run, opened: Opened, tmp_path: Path) -> None:
    page = opened.show(report([run]).html, tmp_path, scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) != "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    figures = page.locator("#network .paper svg")
    assert figures.count() >= 4
    assert page.locator(".uplot:visible, #timeline canvas:visible").count() == 0
    marks = [
        text
        for text in figures.first.locator("text").all_text_contents()
        if re.fullmatch(r"[\d.]+ [mu]s", text)
    ]
    assert len(marks) > 2  # also where all times are within a decade
    page.emulate_media(media="screen")
    page.wait_for_selector("#network .uplot:visible")
    assert opened.wrong == []


@in_a_browser
def test_jobs_that_did_the_same_are_shown_once(opened: Opened, tmp_path: Path) -> None:
    job = "workload: {kind: periodic, compute: 1ms, size: 1MB, ranks: 2}, iterations: 2"
    run = cosim.run(
        "topology: {kind: switch, endpoints: 6, rate: 100Gbps, latency: 1us}\nnetwork: fair_share\njobs:\n"
        + "".join(f"- {{name: {name}, {job}}}\n" for name in ("one", "two", "three"))
    )
    page = opened.show(run.report().html, tmp_path)
    assert page.locator("#answer h3").all_inner_texts() == ["one × 3 alike"]
    assert page.locator("#path h3").first.inner_text() == "one × 3 alike"
    steps = page.locator("#path tr.link").all_inner_texts()
    assert {row.split("\t")[1] for row in steps} == {"one", "two", "three"}
    assert any("0 ps" in row.split("\t") for row in steps)  # from the last iteration's start
    assert opened.wrong == []


@in_a_browser
def test_tiers_say_where_links_are_busy_and_which_node_carries_most(opened: Opened, tmp_path: Path) -> None:
    run = cosim.run(
        "topology: {kind: leaf_spine, leaves: 4, spines: 4, endpoints_per_leaf: 4, rate: 100Gbps,"
        " latency: 500ns, routing: dmodk}\nnetwork: fair_share\njobs:\n"
        "- {workload: {kind: periodic, compute: 1ms, size: 10MB, communication: incast, ranks: 16},"
        " iterations: 2}\n"
    )
    page = opened.show(run.report().html, tmp_path)
    links = run.links
    up = np.array([name.startswith("leaf") and " -> spine" in name for name in links.name])
    sums = {f"spine{k}": 0 for k in range(4)}
    for name, sent in zip(np.array(links.name)[up], links.sent_bytes[up], strict=True):
        sums[name.split(" -> ")[1]] += int(sent)
    top = max(sums, key=lambda one: sums[one])
    share = sums[top] / sum(sums.values())
    assert share > 1.5 / 4
    said = f"{top} carries {100 * share:.1f} % of what goes leaf → spine"
    assert said in page.inner_text("#fabric")
    assert "times an even share of 4" in page.inner_text("#answer")
    strips = page.locator("#fabric canvas.strip")
    tiers = {re.sub(r"\d", "", name) for name, sent in zip(links.name, links.sent_bytes, strict=True) if sent}
    assert strips.count() == len(tiers)
    up_tier = page.locator("#fabric button:has-text('leaf → spine')")
    up_tier.focus()
    page.keyboard.press("Enter")
    assert up_tier.get_attribute("aria-expanded") == "true"
    parts = page.locator("#fabric tr:has(.part)").all_inner_texts()
    assert len(parts) == 4
    assert parts[0].split("\t")[0].strip() == top
    assert sum(float(one.split("\t")[-1].removesuffix(" %")) for one in parts) == pytest.approx(100, abs=0.2)
    page.keyboard.press("Enter")
    assert page.locator("#fabric .part").count() == 0
    strips.first.click()
    assert "Between " in page.inner_text("#fabric")
    assert "alike" in page.inner_text("#fabric")  # links that did the same are one row
    assert opened.wrong == []
