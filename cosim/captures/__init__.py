"""Captures: what was measured of a network's traffic, read into columns.

:func:`cosim.captures.read.read_capture` tells by a file's content which format it has. Formats are plug-ins:
``contract`` says what they are, ``formats`` has those that come along.
"""
