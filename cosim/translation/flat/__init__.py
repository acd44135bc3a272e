"""The message level: every rank's computations, sends and receives, one flat graph without streams.

A view of a pattern, made rank by rank, so that memory grows with one rank and not with the world.

=================  ==========================================================================
``order``          streams: which operation goes before which, where dependencies leave it open
``gates``          chunks and phases: which waits for a place in a queue
``share``          one rank's share of a template
``program``        one rank's nodes, operation by operation
``view``           all ranks, iterations unrolled; what was fixed, for the loss report
=================  ==========================================================================
"""
