"""Schedulers: what jobs that share a fabric do at the same time is decided, not left to chance."""
