"""Folding of catalogue models: equal to the picosecond to the whole, and refused where ranks differ."""

from dataclasses import replace

import numpy as np
import pytest

import cosim
from cosim.engine.folding.find import find_folding
from cosim.experiment.build import build
from cosim.experiment.scenario import Scenario, loads
from cosim.workload.program import OpKind, Program

FABRIC = """
topology:
  kind: leaf_spine
  leaves: 16
  spines: 16
  endpoints_per_leaf: 16
  latency: 500ns
  routing: dmodk
  hosts: {{gpus: 8, nvlink_rate: 300GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 200Gbps, rails: true}}
network: fair_share
collectives: {{all_reduce: ring, all_gather: ring, reduce_scatter: ring, all_to_all: direct}}
jobs: [{{name: job, workload: {workload}}}]
"""
GPT = (
    "{kind: model, model: {kind: gpt3-1.7b, layers: 4}, gpu: a100-80gb, parallel: {tp: 8, pp: 2, dp: 16}, "
    "batch: 64}"
)
EXPERTS = (
    "{kind: model, model: {kind: mixtral-8x7b, layers: 2, vocabulary: 4096}, gpu: a100-80gb, "
    "parallel: {tp: 8, dp: 32, ep: 8}, sequence: 1024, sharded_optimizer: true}"
)
SHARDED = (
    "{kind: model, model: {kind: llama3-8b, layers: 3, vocabulary: 4096}, gpu: a100-80gb, "
    "parallel: {fsdp: 32, cp: 8}, sequence: 8192}"
)


def scenario(workload: str) -> Scenario:
    return loads(FABRIC.format(workload=workload))


@pytest.mark.parametrize(
    ("workload", "copies"), [(GPT, 128), (EXPERTS, 8), (SHARDED, 2)], ids=["gpt", "experts", "sharded"]
)
def test_a_model_on_256_gpus_folds_to_the_picosecond(workload: str, copies: int) -> None:
    whole = cosim.run(scenario(workload), set={"fold": "never"})
    folded = cosim.run(scenario(workload), set={"fold": "always"})
    job = folded.records.jobs[0]
    assert job.folding is not None
    assert job.folding.copies >= copies
    everyone = job.folding.translations.images(job.folding.translations.representatives)
    assert (whole.records.finish_ps[0][everyone] == folded.records.finish_ps[0]).all()
    assert whole.records.num_messages == folded.records.num_messages
    assert (whole.records.links.link_bytes == folded.records.links.link_bytes).all()
    assert (whole.records.links.busy_ps == folded.records.links.busy_ps).all()
    assert whole.summary.collectives == folded.summary.collectives
    assert whole.summary.jobs[0].iteration_ps == folded.summary.jobs[0].iteration_ps


def test_a_slow_gpu_is_not_folded_with_the_others() -> None:
    built = build(scenario(GPT))
    job = built.jobs[0]
    first = job.workload.programs[0].operations
    slow = [replace(o, duration_ps=2 * o.duration_ps) if o.kind is OpKind.COMPUTE else o for o in first]
    program_of = job.workload.program_of.copy()
    program_of[3] = len(job.workload.programs)
    programs = (*job.workload.programs, Program("slow", tuple(slow)))
    workload = replace(job.workload, programs=programs, program_of=np.asarray(program_of))
    folding, reasons = find_folding(
        built.topology, built.network.describe(), [replace(job, workload=workload)], built.planner
    )
    assert folding is None
    assert "dp (16): ranks along it run different programs" in reasons
    assert "tp (8): ranks along it run different programs" in reasons
