"""Every kind of page keeps WCAG 2.1 AA, light and dark, as axe-core sees it; Tab goes down it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import cosim
from cosim.results.report.document import report
from cosim.results.report.server import view_server
from tests.results.report.browser import Opened, in_a_browser

NO_AXE = "" if importlib.util.find_spec("axe_playwright_python") else "no axe: pip install 'cosim-net[docs]'"
AA = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
OF_COLOUR = {"type": "rule", "values": ["color-contrast"]}
OF_A_NARROW_PAGE = {"type": "rule", "values": ["scrollable-region-focusable"]}
TEXT = """
topology:
  {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 4, latency: 500ns,
   hosts: {gpus: 4, nvlink_rate: 100GB/s, nvlink_latency: 300ns, nics: 4, nic_rate: 100Gbps}}
network: {model: congestion, control: dctcp}
record: {messages: true, queues: "leaf* -> *", every: 100us}
events: [{link: leaf0 <-> spine1, down: true, at: 1ms, until: 2ms}]
jobs:
- name: first
  workload:
    {kind: transformer, layers: 1, hidden: 1024, heads: 8, vocabulary: 1024, sequence: 512, micro_batch: 1,
     tensor_parallel: 2, data_parallel: 2, gpu: h100-sxm}
  iterations: 3
- {name: second, workload: {kind: periodic, compute: 1ms, size: 2MB, ranks: 4}, iterations: 3}
"""
LIFETIME = """
topology: {kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}
network: fair_share
events: [{rank: 1, fails: true, mtbf: 3d, repair: 1h, cause: memory}]
jobs:
- workload:
    {kind: operations, world_size: 2, programs: [{operations: [{name: one, kind: compute, duration: 6s}]}]}
  training: {lasts: 30d, restart: 20min, checkpoint: {every: 1h, time: 30s}}
"""
SLOWER = {"topology.hosts.nic_rate": "50Gbps"}
AXES = {"rate": {"topology.hosts.nic_rate": ["100Gbps", "50Gbps"]}, "every": {"record.every": ["1ms", "2ms"]}}
WHAT_IF: dict[str, Any] = {"nothing": {"events": []}}
DESIGN = {"scenario": yaml.safe_load(TEXT), "axes": AXES, "optimizer": "all", "what_if": WHAT_IF}


def _studied() -> cosim.Run:
    run = cosim.run(TEXT)
    run.study("alone")
    return run


PAGES: dict[str, Callable[[], str]] = {
    "run": lambda: _studied().report().html,
    "training": lambda: cosim.run(LIFETIME).report().html,
    "two runs": lambda: report([cosim.run(TEXT), cosim.run(TEXT, SLOWER)]).html,
    "sweep": lambda: cosim.sweep(TEXT, AXES, seeds=3, measures=["iteration", "exposed"]).report().html,
    "search": lambda: cosim.search(DESIGN).report().html,
}


def violations(page: Any, rules: dict[str, Any] = AA) -> list[str]:
    """What axe-core finds: the rule, and the first elements that break it."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"runOnly": rules}).response["violations"]
    return [
        f"{one['id']}: {node['target']}: {node['failureSummary'].splitlines()[-1].strip()}"
        for one in found
        for node in one["nodes"][:5]
    ]


@pytest.mark.slow
@in_a_browser
@pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE or "it is here")
@pytest.mark.parametrize("kind", PAGES)
def test_a_page_breaks_no_rule_of_axe(kind: str, opened: Opened, tmp_path: Path) -> None:
    html = PAGES[kind]()
    for wide, scheme, rules in (
        (1440, "light", AA),
        (1440, "dark", OF_COLOUR),
        (390, "light", OF_A_NARROW_PAGE),
    ):
        page = opened.show(html, tmp_path, wide=wide, scheme=scheme)
        assert violations(page, rules) == [], f"{wide} px, {scheme}"
    assert opened.wrong == []


@in_a_browser
@pytest.mark.skipif(bool(NO_AXE), reason=NO_AXE or "it is here")
def test_the_list_of_runs_breaks_no_rule_of_axe(opened: Opened, tmp_path: Path) -> None:
    for name in ("one", "two"):
        cosim.run(LIFETIME, {"name": name}, tmp_path / name)
    with view_server(tmp_path, 0) as server:
        import threading

        threading.Thread(target=server.serve_forever, daemon=True).start()
        for scheme in ("light", "dark"):
            opened.page.emulate_media(color_scheme=scheme)
            opened.page.goto(f"http://127.0.0.1:{server.server_port}/")
            opened.page.wait_for_selector("tbody tr")
            assert violations(opened.page) == [], scheme
        server.shutdown()
    assert opened.wrong == []


@in_a_browser
def test_tab_goes_down_the_page_and_shows_where_it_is(opened: Opened, tmp_path: Path) -> None:
    page = opened.show(PAGES["run"](), tmp_path)
    order = page.evaluate("""[...document.querySelectorAll("section")].map((one) => one.id)""")
    seen, unmarked = [], []
    for _ in range(80):
        page.keyboard.press("Tab")
        place, marked, what = page.evaluate(
            """() => {
              const at = document.activeElement;
              const look = () => {
                const style = getComputedStyle(at);
                return [style.outlineStyle, style.borderColor, style.color, style.filter].join();
              };
              const focused = look();
              at.blur();
              const plain = look();
              at.focus();
              return [at.closest("section")?.id ?? "", focused !== plain, at.outerHTML.slice(0, 80)];
            }"""
        )
        seen += [place] if place else []
        unmarked += [] if marked else [what]
    assert unmarked == []
    places = [order.index(one) for one in dict.fromkeys(seen)]
    assert places == sorted(places)
    assert {"answer", "timeline", "path"} <= {*seen}
