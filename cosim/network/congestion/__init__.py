"""The congestion network: fluid at round-trip granularity, with queues, marks, drops, pauses, and controls.

A plug-in needs ``from cosim.network.congestion import Control``.
"""

from cosim.network.congestion.contract import Control

__all__ = ["Control"]
