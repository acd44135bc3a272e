"""The timeline of a page: colours by purpose, filters, search, folds, all jobs, and Perfetto."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cosim
from cosim.results.purposes import purpose_of
from cosim.results.report.run_data import run_data
from cosim.results.report.source import source_of
from tests.results.report.browser import Opened, in_a_browser

TEXT = """
topology:
  {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, latency: 500ns,
   hosts: {gpus: 4, nvlink_rate: 100GB/s, nvlink_latency: 300ns, nics: 4, nic_rate: 100Gbps}}
network: fair_share
jobs:
- workload:
    {kind: transformer, layers: 2, hidden: 1024, heads: 8, vocabulary: 1024, sequence: 512, micro_batch: 1,
     tensor_parallel: 4, data_parallel: 2, gpu: h100-sxm}
  iterations: 2
"""
CANVAS = "#timeline canvas[tabindex]"


@pytest.fixture(scope="module")
def run() -> cosim.Run:
    return cosim.run(TEXT)


def picture(page: Any) -> str:
    drawn: str = page.locator(CANVAS).evaluate("node => node.toDataURL()")
    return drawn


@pytest.mark.parametrize(
    ("axes", "purpose"),
    [
        (("dp", "cp"), "dp"),
        (("edp",), "dp"),
        (("ep", "cp", "tp"), "ep"),
        (("tp", "pp"), "pp"),
        (("tp",), "tp"),
        (("cp",), "other"),
        ((), "dp"),  # over all axes
    ],
)
def test_a_collective_is_for_what_its_axes_say(axes: tuple[str, ...], purpose: str) -> None:
    mesh = cosim.DeviceMesh({"dp": 2, "edp": 2, "ep": 2, "cp": 2, "tp": 2, "pp": 2})
    kind = cosim.OpKind.COLLECTIVE
    assert purpose_of(cosim.Operation("one", kind, collective="all_reduce", axes=axes), mesh) == purpose
    named = cosim.Operation("one", kind, collective="all_reduce", ranks=(0, 1))
    assert purpose_of(named, mesh) == "other"


def test_a_message_between_stages_is_for_the_pipeline() -> None:
    mesh = cosim.DeviceMesh({"pp": 2, "tp": 2})
    for peer, purpose in ((cosim.Peer(axis="pp", offset=1), "pp"), (cosim.Peer(rank=1), "other")):
        assert purpose_of(cosim.Operation("one", cosim.OpKind.SEND, peer=peer), mesh) == purpose


def test_operations_of_a_page_are_shaded_by_purpose(run: cosim.Run) -> None:
    head, columns = run_data(source_of(run))
    shades = np.array(head["timeline"]["shades"])[columns["op_shade"]]
    names = np.array(head["texts"])[columns["op_name"]]
    assert {*shades[np.char.startswith(names, "gradient bucket")]} == {"dp"}
    assert {*shades} == {"compute", "host", "dp", "tp"}
    assert {lane["node"]: lane["host"] for lane in head["timeline"]["lanes"]}.items() <= {
        (f"gpu{k}", f"host{k // 4}") for k in range(8)
    }


@in_a_browser
def test_what_is_drawn_as_exposed_is_the_summarys(run: cosim.Run, opened: Opened, tmp_path: Path) -> None:
    page = opened.show(run.report().html, tmp_path)
    exposed = page.evaluate(
        """async () => {
          const { TimelineView } = await import("report/timeline_view.js");
          const { unpack } = await import("report/data.js");
          const [one] = (await unpack(document.getElementById("data").textContent)).runs;
          const view = new TimelineView(one, "");
          const spans = one.timeline.lanes.map(() => []);
          one.columns.op_lane.forEach((lane, k) => {
            if (["tp", "dp"].includes(view.shadeOf(k))) spans[lane].push(...view.gaps(k));
          });
          return spans.map((mine, lane) => {
            let [end, all] = [-1, 0];
            for (const [a, b] of mine.sort((x, y) => x[0] - y[0])) {
              all += Math.max(0, b - Math.max(a, end));
              end = Math.max(end, b);
            }
            return all * one.timeline.lanes[lane].alike;
          });
        }"""
    )
    assert sum(exposed) / 8 == pytest.approx(run.summary.jobs[0].exposed.mean_ps, abs=1)
    assert opened.wrong == []


@in_a_browser
def test_filters_search_and_folds_change_what_is_drawn(
    run: cosim.Run, opened: Opened, tmp_path: Path
) -> None:
    page = opened.show(run.report().html, tmp_path)
    buttons = page.locator("#timeline .key button")
    assert buttons.all_inner_texts() == ["computation", "host", "tensor parallel", "data parallel"]
    whole = picture(page)
    buttons.nth(2).focus()
    page.keyboard.press("Enter")
    assert buttons.nth(2).get_attribute("aria-pressed") == "false"
    assert picture(page) != whole
    page.keyboard.press("Enter")
    assert picture(page) == whole
    page.keyboard.press("/")
    page.keyboard.type("GRADIENT bucket 0")
    head, columns = run_data(source_of(run))
    mine = int((np.array(head["texts"])[columns["op_name"]] == "gradient bucket 0").sum())
    assert mine > 0
    assert page.inner_text("#timeline output") == f"{mine} found"
    pale = picture(page)
    assert pale != whole
    page.keyboard.press("Enter")
    assert "gradient bucket 0: " in page.inner_text("#timeline .chosen")
    assert picture(page) != pale
    page.keyboard.press("Escape")
    assert page.inner_text("#timeline output") == ""
    tall = page.locator(CANVAS).evaluate("node => node.clientHeight")
    page.get_by_label("fold hosts").check()
    folded = page.locator(CANVAS).evaluate("node => node.clientHeight")
    assert folded < tall / 2
    page.locator(CANVAS).click(position={"x": 30, "y": 34})  # the name of the first host
    assert folded < page.locator(CANVAS).evaluate("node => node.clientHeight") < tall
    assert opened.wrong == []


@in_a_browser
def test_a_step_that_was_chosen_is_outlined_and_the_minimap_moves(
    run: cosim.Run, opened: Opened, tmp_path: Path
) -> None:
    page = opened.show(run.report().html, tmp_path)
    step = page.locator("#path tr.link").first
    name = step.locator("td").first.inner_text()
    step.focus()
    page.keyboard.press("Enter")
    assert page.inner_text("#timeline .chosen").startswith(f"{name}: ")
    outlined = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--chosen').trim()")
    rgb = [int(outlined[k : k + 2], 16) for k in (1, 3, 5)]
    count = page.locator(CANVAS).evaluate(
        """(node, [r, g, b]) => {
          const { data } = node.getContext("2d").getImageData(0, 0, node.width, node.height);
          let found = 0;
          for (let k = 0; k < data.length; k += 4)
            found += data[k] === r && data[k + 1] === g && data[k + 2] === b;
          return found;
        }""",
        rgb,
    )
    assert count > 50
    before = picture(page)
    page.locator("#timeline .minimap").click(position={"x": 40, "y": 10})
    assert picture(page) != before
    assert opened.wrong == []


@in_a_browser
def test_iterations_of_every_job_can_be_chosen(opened: Opened, tmp_path: Path) -> None:
    text = "topology: {kind: switch, endpoints: 4, rate: 100Gbps, latency: 1us}\nnetwork: fair_share\njobs:\n"
    for name, start in (("one", "0ms"), ("two", "10ms")):
        work = "workload: {kind: periodic, compute: 1ms, size: 1MB, ranks: 2}"
        text += f"- {{name: {name}, start: {start}, iterations: 2, {work}}}\n"
    page = opened.show(cosim.run(text).report().html, tmp_path)
    choice = page.get_by_label("Iteration")
    assert choice.locator("optgroup").evaluate_all("all => all.map((one) => one.label)") == ["one", "two"]
    before = picture(page)
    choice.select_option("1 0")
    assert picture(page) != before
    assert opened.wrong == []


RECEIVER = """<script>
addEventListener("message", (event) => {
  if (event.data === "PING") event.source.postMessage("PONG", event.origin === "null" ? "*" : event.origin);
  else document.title = new TextDecoder().decode(event.data.perfetto.buffer);
});
</script>"""


@in_a_browser
def test_perfetto_is_sent_the_trace_and_a_file_has_it_offline(
    run: cosim.Run, opened: Opened, tmp_path: Path
) -> None:
    page = opened.show(run.report().html, tmp_path)
    page.context.route(
        "https://ui.perfetto.dev/**", lambda route: route.fulfill(body=RECEIVER, content_type="text/html")
    )
    with page.expect_popup() as popup:
        page.locator("#timeline button:text-is('Perfetto')").click()
    popup.value.wait_for_function("document.title !== ''")
    sent = popup.value.title()
    popup.value.close()
    with page.expect_download() as saved:
        page.locator("#timeline button:text-is('Trace')").click()
    text = Path(saved.value.path()).read_text("utf-8")
    assert sent == text
    events = [one for one in json.loads(text)["traceEvents"] if one["ph"] == "X"]
    alike = [lane["alike"] for lane in run_data(source_of(run))[0]["timeline"]["lanes"]]
    operations = run.operations
    assert sum(alike[one["pid"]] for one in events) == operations.num_rows
    assert sum(one["dur"] * alike[one["pid"]] for one in events) == pytest.approx(
        (operations.end_ps - operations.start_ps).sum() / 1e6, rel=1e-9
    )
    threads: dict[tuple[int, int], float] = {}
    for one in events:  # slices of a thread follow one another
        place = one["pid"], one["tid"]
        assert one["ts"] >= threads.get(place, 0.0) - 1e-6
        threads[place] = one["ts"] + one["dur"]
    assert opened.wrong == []
