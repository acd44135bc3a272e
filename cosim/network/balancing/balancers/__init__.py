"""The balancers that are built in, one file each.

================  ======================================================================
``adaptive``      adaptive routing, packet by packet: more of a message goes where queues are short and
                  links have room
``ecmp``          the path that the topology's routing gives, for the whole run
``flowlet``       a connection that paused for longer than ``gap`` draws a new path, so that no packet
                  overtakes another
``least_loaded``  a message takes the path on which it can expect most, and keeps it
``reps``          entropies whose packets came through unmarked are used again; marked ones are drawn again
``spray``         packet spraying: every message goes over all its paths, the same part over each
``sprayed``       what balancers have in common that split a message packet by packet
``ugal``          a message takes a shortest path, or Valiant's detour where waiting times hops is less
                  there
``valiant``       valiant's load balancing: every message goes by way of a switch drawn at random, whatever is
                  shorter
``weighted``      weighted ECMP: a connection keeps one path, drawn by a hash in proportion to the paths'
                  slowest links
================  ======================================================================
"""
