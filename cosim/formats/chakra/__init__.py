"""Chakra execution traces out: collective level (``collectives``), message level (``messages``)."""
