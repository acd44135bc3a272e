"""Models that become workloads: layers with FLOPs, bytes and parameters, cut by a parallelism."""
