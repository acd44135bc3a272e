"""NCCL Inspector's JSON: what it would have logged of a run of ours."""
