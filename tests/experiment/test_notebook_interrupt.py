"""A cell of a notebook that is interrupted keeps what was computed, and the next one runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.processes import PATIENCE_S

manager = pytest.importorskip("jupyter_client.manager", reason="pip install ipykernel")
pytest.importorskip("ipykernel", reason="pip install ipykernel")

FIRST = """
import cosim
SCENARIO = '''
topology: {kind: ring, endpoints: 16, rate: 80Gbps, latency: 1us}
network: fair_share
jobs:
  - workload: {kind: periodic, communication: all_reduce, compute: 1us, ranks: 16, size: 4MB}
    iterations: 9
'''

def progress(info):
    if info.done > 1000:  # operations; an iteration has 32
        print("going", flush=True)

run = cosim.run(SCENARIO, {"jobs[0].iterations": 10**6}, progress=progress)
print(run.records.interrupted, len(run.records.iteration_end_ps[0]) > 0)
"""


def said(client: Any, code: str, on_said: Any = None) -> str:
    """What a cell says."""
    asked, texts = client.execute(code), []
    while True:
        message = client.get_iopub_msg(timeout=PATIENCE_S)
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        texts.append(content.get("text") or f"{content.get('ename', '')} {content.get('evalue', '')}")
        if message["msg_type"] == "stream" and on_said is not None:
            on_said()
            on_said = None
        if content.get("execution_state") == "idle":
            return "".join(texts)


@pytest.mark.slow
def test_an_interrupt_keeps_what_a_cell_has_computed() -> None:
    kernel, client = manager.start_new_kernel(startup_timeout=PATIENCE_S, kernel_name="python3")
    try:
        first = said(client, FIRST, kernel.interrupt_kernel)
        assert "interrupted at" in first, first
        assert "True" in first
        assert "''" in said(client, "print(repr(cosim.run(SCENARIO).records.interrupted))")
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
