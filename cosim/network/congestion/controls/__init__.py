"""Built-in congestion controls, one a file, each with its paper and that paper's defaults.

===========  ======================================================================
``cubic``    after a cut the window follows a cubic of time towards where it was, and on from there
``dcqcn``    rates cut by congestion notifications, and recovered by a timer and a byte counter
``dctcp``    the window is cut in proportion to the fraction of bytes marked
``fixed``    fixed windows: no control at all; links are shared as windows are, so as weights are
``hpcc``     the window follows the most loaded link of the path, as in-network telemetry reports it
``mltcp``    any control, its growth scaled by how much of its iteration a job has sent
``newreno``  a packet more for each window acknowledged, half of what is on its way at a loss or a mark
``nscc``     ultra Ethernet's sender-based control, by marks and delay together
``rccc``     ultra Ethernet's receiver-based control, by credit, for sprayed packets
``swift``    the window follows the delay towards a target, which grows with hops and for small windows
``timely``   the rate follows the gradient of the round-trip time
===========  ======================================================================
"""
