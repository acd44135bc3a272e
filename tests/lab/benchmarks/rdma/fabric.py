"""128 GPUs in hosts of eight, on a fabric of rails: what large runs with packets go over."""

FABRIC = """
topology:
  kind: leaf_spine
  leaves: 8
  spines: 8
  endpoints_per_leaf: 16
  latency: 500ns
  routing: dmodk
  hosts: {gpus: 8, nvlink_rate: 450GB/s, nvlink_latency: 300ns, nics: 8, nic_rate: 400Gbps, rails: true}
"""
