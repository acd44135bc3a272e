"""What nccl-tests print: a collective's time by size."""
