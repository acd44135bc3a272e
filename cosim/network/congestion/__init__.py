"""The congestion network: fluid at round-trip granularity, with queues, marks, drops, pauses, and controls.

A plug-in needs ``from cosim.network.congestion import Control``.

================  ======================================================================
``contract``      congestion controls: what a plug-in is
``control``       asking a control: batches of connections as columns, and its answers checked
``credits``       credits of links, hop by hop, and links that send again what arrived wrong
``fabric``        what a fabric is to the congestion network: the links and ports of a topology, as a
                  scenario and a control have them, and what is read off them when a run ends
``settings``      what a scenario says of the congestion network: ``{model: congestion, control: dctcp,
                  ...}``
``state``         the state of the congestion network: ``struct congestion_state`` of
                  ``cosim/kernel/src/kernel.h``, which says what each field is
``subflow_rows``  rows of subflows and of their hops, as connections get paths; they are never taken back
``tuning``        parameters of a control that change while a run goes on
``watching``      what stands at some links at an instant, computed on copies of them: settled where they
                  are, lines would be cut, and that shows in the last digits of all that follows
================  ======================================================================
"""

from cosim.network.congestion.contract import Control

__all__ = ["Control"]
