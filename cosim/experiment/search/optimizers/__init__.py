"""Optimizers: which point of a design to run next."""
