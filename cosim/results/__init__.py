"""What came: reads :class:`~cosim.engine.records.Records` and says it to people and to other programs.

=================  ==========================================================================
``summary``        ``summarize(records) -> Summary``: everything below, in one object
``breakdown``      per rank: compute, communication, exposed, host, idle
``collectives``    time, algbw and busbw of each kind of collective
``fct``            percentiles of flow completion times
``links``          the busiest links, and utilisation over time
``stragglers``     which ranks the others waited for
``matrices``       rank x rank traffic over time
``terminal``       the page that a person reads
``store``          a run as files: summary.json, columns.npz, messages
``timeline``       Chrome trace events, for https://ui.perfetto.dev
``compare``        what differs between two runs
=================  ==========================================================================
"""
