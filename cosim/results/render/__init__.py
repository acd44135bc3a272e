"""Results as people see them: every module here shows what the rest of :mod:`cosim.results` computes.

====================  ==========================================================================
``table``             rows of cells as aligned lines
``terminal``          the page of a run
``comparison``        the page of ``cosim compare``
``network_page``      several networks side by side
``sweep_page``        the page of a sweep
``alone``             each job beside its time alone
``open_loop``         closed loop against open loop
``html``              all of them in a notebook
``figure``            a figure without a display; ``sweep_figure`` and ``sharing_figure`` draw on it
``timeline``          Chrome trace events, for https://ui.perfetto.dev
====================  ==========================================================================
"""
