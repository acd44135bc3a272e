"""WHERE: endpoints, switches, directed links, and how a message finds its way.

``graph``        ``Topology``, and the routing seam ``Paths``
``regular``      Ring, FullyConnected, Switch; ``grid``: 1 to N dimensions of them
``leaf_spine``, ``fat_tree``   switched ``tree`` s, with ``hosts`` (NVSwitch, NICs, rails) below
``explicit``     graphs from YAML and from networkx
``scale_up``, ``part``   scale-up domains; some links as a topology of their own
``routing``      shortest and ECMP over ``hop_tables``; dimension-ordered is in ``grid``
``contract``     what a scenario can name: ``TopologySpec`` and ``RoutingSpec``; ``routings``: those there are
``builder``      nodes by name, links by the array, a routed topology
"""
