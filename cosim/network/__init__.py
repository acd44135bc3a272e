"""HOW LONG: the seam :class:`~cosim.network.simulator.NetworkSimulator`, and what stands behind it here.

======================  ======================================================================
``simulator``           the seam
``flows``               tables, groups and batches of flows, as columns
``unaware``, ``aware``  ASTRA-sim's analytical models; ``analytical``: with links that change, its ``legs``
``fair_share``          max-min fair sharing
``contract``            what a network of a scenario is: a spec that builds one
``forwarding``          a network that hands everything on to another
``hybrid``              two networks as one: scale-up and scale-out; its ``carrier``, ``shares``, ``merged``
``releaser``            dependencies followed outside a network
``outbox``              what a network is to be given next
``named``               field types that name a network, and what is looked at of one that was made
``compiled``, ``core``  what the compiled models share
``store``               flows in flight, and what waits for what
``reference/``          the models in plain Python, for the reference engine
``arrival``             a network that knows, when a message starts, when it arrives: base of such models,
                        in plain Python
``carriers``            which of a hybrid's two networks carries a message: that whose links its path takes
``chance``              random numbers that follow from the run's seed, who draws and when: the same however
                        a run is cut
``compiled_hybrid``     a hybrid of two networks of the kernel: one loop, without Python between their turns
``hybrid_spec``         what a scenario says of a hybrid: ``{model: hybrid, scale_up: fair_share, scale_out:
                        ns3}``
``plugged``             the compiled part of a congestion control or a load balancer: where it is
``balancing/``          WHICH WAY: load balancers, which choose among equal-cost paths while a run goes on
``device/``             loads and stores on GPUs with compute units, line by line
``congestion/``         the congestion network: fluid at round-trip granularity, with queues, marks, drops,
                        pauses, and controls
======================  ======================================================================
"""
