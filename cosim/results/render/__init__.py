"""Results as people see them: every module here shows what the rest of :mod:`cosim.results` computes.

======================  ==========================================================================
``page``                a page before it is laid out: sections of tables and lines
``summary_page`` ...    the pages of a run, a sweep, several networks, a comparison, both loops
``text``, ``terminal``  a page as text; on a terminal
``html``                a page in a notebook
``figure``              a figure without a display; ``sweep_figure``, ``sharing_figure`` draw on it
``timeline``            Chrome trace events, for https://ui.perfetto.dev
======================  ==========================================================================
"""
