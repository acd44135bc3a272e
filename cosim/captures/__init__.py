"""Captures: what was measured of a network's traffic, read into columns.

:func:`cosim.captures.read.read_capture` tells by a file's content which reader it needs.
"""
