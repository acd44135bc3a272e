"""WHAT BREAKS: links, nodes and ranks that fail, slow down and come back.

==============  =====================================================================
``event``       what a scenario says of one: of what, what happens, and when
``occasions``   when it happens: once, every so often, or drawn
``links``       events of links and nodes as changes of a topology's links
``ranks``       events of ranks: how much slower they compute, and from when on
``failures``    ranks that fail
``training``    a whole training with its failures, checkpoints and restarts
==============  =====================================================================
"""
