"""Folding: ranks that all fare the same are simulated once and multiplied, where that is provably exact."""
