"""A connection that waits to learn of a loss doesn't rest: nothing else would ever wake it."""

import cosim

SCENARIO = """
topology: {kind: leaf_spine, leaves: 4, spines: 2, endpoints_per_leaf: 4, rate: 100Gbps, latency: 1us,
           oversubscription: 2, routing: ecmp}
network: {model: congestion, control: newreno}
seed: 0
jobs:
  - workload: {kind: transformer, layers: 2, hidden: 1024, heads: 16, vocabulary: 8192, sequence: 1024,
               micro_batch: 6, data_parallel: 4, tensor_parallel: 4, gpu: a100-80gb}
    placement: spread
    iterations: 4
    jitter: 0.02
"""


def test_a_loss_in_the_last_packets_of_a_settled_connection_is_sent_again() -> None:
    """With this seed a connection whose window no longer changes loses its last three packets."""
    run = cosim.run(cosim.loads(SCENARIO))
    assert len(run.summary.jobs[0].iteration_ps) == 4
