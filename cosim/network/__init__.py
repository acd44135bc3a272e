"""HOW LONG: the seam :class:`~cosim.network.simulator.NetworkSimulator`, and what stands behind it here.

======================  ======================================================================
``simulator``           the seam
``flows``               tables, groups and batches of flows, as columns
``unaware``, ``aware``  ASTRA-sim's analytical models; ``analytical``: with links that change, its ``legs``
``fair_share``          max-min fair sharing; its ``channels``, ``changes``, ``drains``
``contract``            what a network of a scenario is: a spec that builds one
``forwarding``          a network that hands everything on to another
``hybrid``              two networks as one: scale-up and scale-out; its ``carrier``, ``shares``, ``merged``
``releaser``            dependencies followed outside a network
``outbox``              what a network is to be given next
``named``               field types that name a network
``compiled``, ``core``  what the compiled models share
``store``, ``dependencies``  flows in flight, and what waits for what
``calendar``, ``order``  events by instant, and their order within one
``reference/``           the models in plain Python, for the reference engine
``jit``                 how loops are compiled
======================  ======================================================================
"""
