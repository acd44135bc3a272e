"""WHO SHARES: several jobs on one fabric: when each starts, which endpoints it gets, how fast it computes.

===============  ======================================================================
``contract``     what placements, arrival processes and the queue of a scenario are
``placement``    packed, spread, random, explicit; ``locality``: near each other
``arrange``      each job's placement in turn
``arrivals``     when jobs of one kind start
``pace``         stragglers and jitter
``aligned``      a placement that keeps groups of a job whole within scale-up domains: hosts, or racks on
                 one NVLink
``sharing``      who has which endpoints while a run goes on: jobs queue, start, and are scheduled
``schedulers/``  what jobs that share a fabric do at the same time is decided, not left to chance
===============  ======================================================================
"""
