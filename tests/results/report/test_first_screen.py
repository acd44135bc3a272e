"""What was asked is answered in the first screen, at a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import cosim
from tests.inputs import ROOT
from tests.results.report.browser import Opened, in_a_browser

CABLE = """
topology: {kind: leaf_spine, leaves: 2, spines: 2, endpoints_per_leaf: 2, rate: 100Gbps, latency: 500ns}
network: fair_share
events: [{link: leaf0 <-> spine1, down: true, at: 12ms, until: 20ms}]
collectives: {all_to_all: direct}
jobs:
- workload:
    kind: operations
    world_size: 4
    programs: [{operations: [{name: step, kind: compute, duration: 1ms},
                {name: tokens, kind: collective, collective: all_to_all, size: 50MB, deps: [step]}]}]
  iterations: 6
"""
LIFETIME = """
topology: {kind: switch, endpoints: 2, rate: 100Gbps, latency: 1us}
network: fair_share
events: [{rank: 1, fails: true, mtbf: 3d, repair: 1h, cause: memory}]
jobs:
- workload:
    {kind: operations, world_size: 2, programs: [{operations: [{name: one, kind: compute, duration: 6s}]}]}
  training: {lasts: 60d, restart: 20min, checkpoint: {every: 1h, time: 30s}}
"""
LARGE = """
topology:
  {kind: leaf_spine, leaves: 32, spines: 32, endpoints_per_leaf: 64, latency: 500ns, routing: dmodk,
   hosts: {gpus: 8, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps}}
network: fair_share
jobs:
- workload:
    {kind: model, model: llama3-8b, gpu: h100-sxm, parallel: {tp: 8, dp: 256}, batch: 256, sequence: 4096}
"""
CONTROLS = """
topology: {kind: leaf_spine, leaves: 2, spines: 1, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us}
network: {model: congestion, control: dctcp}
jobs: [{workload: {kind: periodic, compute: 1ms, size: 1MB, communication: incast, ranks: 8}, iterations: 2}]
"""


def cable() -> tuple[str, list[str]]:
    run = cosim.run(CABLE)
    times = run.iterations.duration_ps
    longest, base = max(times), min(times)
    assert longest > base
    return run.report().html, ["leaf0 <-> spine1 down", "more than"]


def suffers() -> tuple[str, list[str]]:
    run = cosim.run(ROOT / "scenarios" / "two-jobs.yaml")
    run.study("alone")
    assert run.alone is not None
    slowed = {job.name: (job.iteration_mean_ps or 0) / run.alone[job.name] for job in run.summary.jobs}
    worst = max(slowed, key=lambda name: slowed[name])
    return run.report().html, [f"{worst} suffers most", f"{slowed[worst]:.3f} times"]


def control() -> tuple[str, list[str]]:
    axes = {"control": {"network.control": ["dctcp", "swift", "dcqcn"]}}
    done = cosim.sweep(CONTROLS, axes, seeds=3, measures=["iteration"], set={"jobs[0].jitter": 0.05})
    return done.report().html, [
        f"{done.order((), 'iteration')[0]} has the best iteration",
        "95 %|not told apart",
    ]


def bottleneck() -> tuple[str, list[str]]:
    run = cosim.run(LARGE)
    assert run.summary.num_endpoints == 2048
    share = (run.links.busy_ps / run.summary.end_ps).max()
    return run.report().html, ["are the busiest: ", f"{100 * share:.1f} %"]


def goodput() -> tuple[str, list[str]]:
    run = cosim.run(LIFETIME)
    life = run.summary.jobs[0].training
    assert life is not None
    return run.report().html, [f"Goodput is {100 * life.goodput:.1f} %", "memory"]


QUESTIONS = {
    "what does it cost that this cable failed": cable,
    "which job suffers": suffers,
    "which control is best and how sure": control,
    "where is the bottleneck of 2048 GPUs": bottleneck,
    "what is goodput over two months": goodput,
}
_ABOVE = """([text, high]) => {
  const walk = document.createTreeWalker(document.getElementById("report"), NodeFilter.SHOW_ELEMENT);
  const matches = (node) => text.split("|").some((one) => node.innerText?.includes(one));
  let found = null;
  while (walk.nextNode()) if (matches(walk.currentNode) && ![...walk.currentNode.children].some(matches)) {
    const box = walk.currentNode.getBoundingClientRect();
    found = Math.min(found ?? Infinity, box.bottom);
  }
  return found;
}"""


@in_a_browser
@pytest.mark.parametrize(
    "question",
    [pytest.param(one, marks=[pytest.mark.slow] * (made is bottleneck)) for one, made in QUESTIONS.items()],
)
def test_the_first_screen_answers(question: str, opened: Opened, tmp_path: Path) -> None:
    made: Callable[[], tuple[str, list[str]]] = QUESTIONS[question]
    html, words = made()
    for wide, high in ((1440, 900), (390, 844)):
        page = opened.show(html, tmp_path, wide=wide)
        for text in words:
            bottom = page.evaluate(_ABOVE, [text, high])
            assert bottom is not None, text
            assert bottom <= high, f"{text!r} ends at {bottom} px of {high} at {wide} px"
    assert opened.wrong == []
