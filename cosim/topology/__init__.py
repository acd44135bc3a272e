"""WHERE: endpoints, switches, directed links, and how a message finds its way.

``graph``        ``Topology``, and the routing seam ``Paths``
``regular``      Ring, FullyConnected, Switch; ``grid``: 1 to N dimensions of them
``leaf_spine``, ``fat_tree``   switched ``tree`` s, with ``hosts`` (NVSwitch, NICs, rails) below
``explicit``     graphs from YAML and from networkx
``scale_up``, ``part``   scale-up domains; some links as a topology of their own
``routing``      shortest and ECMP over ``hop_tables``; dimension-ordered is in ``grid``
``plain_paths``  the same paths without the kernel
``contract``     what a scenario can name: ``TopologySpec`` and ``RoutingSpec``; ``routings``: those there are
``builder``      nodes by name, links by the array, a routed topology

==================  ======================================================================
``around``          paths around dead links: routing over what is left of a topology
``checked_paths``   paths of a routing that somebody plugged in, looked at before a network goes by them
``direct_connect``  servers linked to one another without switches, as TopoOpt does with a patch panel
``dragonfly``       groups of switches, all to all within a group, and links between all pairs of groups
``expander``        switches linked to one another at random, each to equally many (Jellyfish)
``file_format``     what formats of topology files are: which files they read, and what nodes and cables
                    such a file lists
``from_file``       kind ``file``: a topology as somebody's file lists it, in whatever format of topologies
                    is known
``galois``          finite fields GF(q), q = p^k: elements are 0 to q - 1, with coefficients of a polynomial
                    as digits
``grid_paths``      dimension-ordered paths on a grid, in closed form and by columns
``host_shape``      what the hosts of a topology have, as collective algorithms ask for it: fabrics by name
``hyperx``          switches in a grid, each linked to all others along each dimension
``path_lengths``    how long paths are, and how an all-to-all loads the links, by a topology's routing
``rail_only``       rail-only: GPUs of equal local number on one switch, and nothing between these rails but
                    the hosts
``slim_fly``        switches two hops apart at most, with as few links as graphs of diameter two are known
                    to need
``strides``         strides of rings over servers: server i is linked to i + s for each stride s, and all of
                    them are one ring
``switch_fabric``   what fabrics share whose switches all have endpoints: their settings
``traced``          settings that are to vary: what links have at any value, of a topology that is built once
``systems``         systems by name: hosts or racks as their data sheets have them, on a rail-optimised
                    fabric
``torus``           torus and mesh: endpoints in a grid of any number of dimensions, linked to their
                    neighbours in each
==================  ======================================================================
"""
