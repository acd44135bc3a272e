"""Schedulers: what jobs that share a fabric do at the same time is decided, not left to chance.

============  ======================================================================
``affinity``  the affinity graph: jobs, and the links on which they stand in each other's way
``cassini``   jobs that share links start their iterations shifted, so that they send when others compute
``check``     what a scheduler said, looked at before anything goes by it
``circle``    demands of several jobs on a link, rolled on one circle, and the shifts at which they exceed
              it least
``compress``  many jobs in order onto few levels of priority: a cut of the contention graph that respects
              the order
``contest``   two jobs on one link, one served first: how much of the link each gets
``contract``  what a scheduler is: from profiles of jobs and the topology to what jobs are told
``crux``      jobs that compute most for each byte they send go first, on the least loaded paths
``demand``    what a job wants of a link over its period, constant between edges
``gains``     what jobs gain by turns: the same jobs simulated with them and without, over some rounds of
              their circle
``periods``   periods that go together: a little longer, where their least common multiple would be too long
``profile``   a job's profile alone: what a scheduler knows of it, in ranks, whatever endpoints it will sit
              on
============  ======================================================================
"""
