"""Programs that measure, compare and try to break cosim; each prints a table for a page of docs/validation.

==============  ==============================================================
``benchmarks``  seconds and bytes
``fuzz``        damaged inputs, killed commands, random worlds
``validation``  errors beside measurements and other simulators
==============  ==============================================================

Beside them stand the short tests that hold their figures.
"""
