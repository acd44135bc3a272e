"""NCCL's own topology dumps of a host."""
