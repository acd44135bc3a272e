"""What came: reads :class:`~cosim.engine.records.Records` and works out what people and programs are shown.

=======================  =====================================================================
``summary``              ``summarize(records) -> Summary``: everything below, in one object
``breakdown``            per rank: compute, communication, exposed, host, idle
``collectives``          time, algbw and busbw of each kind of collective
``fct``                  percentiles of flow completion times
``links``, ``queues``    the busiest links, utilisation over time; queues, marks, drops, pauses
``stragglers``           which ranks the others waited for
``overlap``              how much of their communication several jobs do at the same time
``matrices``             rank x rank traffic over time
``sharing``              which job has how much of a link when
``measures``             one number of a run each, by name
``sweep``, ``orders``    what came of a sweep; which choice is better than which
``networks``             several networks on the same designs
``open_loop``            the closed loop beside the open loop
``compare``              what differs between two runs
``tables``, ``table``    columns as numpy, pandas, Arrow
``store``                a run as files; ``stored_run`` reads them back
``optable``, ``collective_columns``, ``intervals``, ``link_shares``
                         what several of these are made from
``render/``              shows all of it: text, HTML, figures, Perfetto
=======================  =====================================================================
"""
