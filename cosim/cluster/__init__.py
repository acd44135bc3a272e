"""WHO SHARES: several jobs on one fabric: when each starts, which endpoints it gets, how fast it computes.

=============  ==========================================================================
``contract``   what placements and arrival processes of a scenario are
``placement``  packed, spread, random, explicit; ``locality``: near each other
``arrange``    each job's placement in turn
``arrivals``   when jobs of one kind start
``pace``       stragglers and jitter
=============  ==========================================================================
"""
