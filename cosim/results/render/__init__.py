"""Results as people see them: every module here shows what the rest of :mod:`cosim.results` computes.

=======================  ======================================================================
``page``                 a page before it is laid out: sections of tables and lines ``summary_page`` ...
                         the pages of a run, a sweep, several networks, a comparison, both loops
``text``, ``terminal``   a page as text; on a terminal
``html``                 a page in a notebook
``figure``               a figure without a display; ``sweep_figure``, ``sharing_figure`` draw on it
``timeline``             Chrome trace events, for https://ui.perfetto.dev
``alone_page``           each job beside its time alone: slowdowns, and Jain's index of the jobs' speeds
``comparison_page``      the page of ``cosim compare``: what was set differently, then what came out
                         differently
``loop_page``            the page of closed loop against open loop
``network_page``         the page of several networks: times, errors against the last, the order of designs
``scheduling_page``      the section of a run's page about its queue and its scheduler
``sensitivity_page``     what matters: a row for each setting that moves an iteration, what moves it most
                         first
``sweep_page``           the page of a sweep: a table for each measure, and where the order of the first
                         axis' choices changes
``traffic_models_page``  a table of models against models: what traffic each makes, and how far each is from
                         each
``traffic_page``         the page of ``cosim analyse``
``training``             what is said of a whole training: goodput, lost time and its causes
=======================  ======================================================================
"""
