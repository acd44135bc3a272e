"""A report of a run as one HTML file: what came of it, its timeline, critical path, fabric and traffic.

=================  ======================================================================
``decision_data``  what the page of a search shows: the ranking, why others lose, what could happen, how to
                   run the winner
``document``       the report: one HTML file that needs nothing from outside, of one run, of two, or of a
                   sweep
``event_data``     events of a run as a report shows them: from when until when, on which links, and what
                   iterations took
``fabric_svg``     a topology as an SVG file: the map of a report without loads, lines as wide as their
                   rates
``folders``        runs and sweeps in a folder and below, as a list: which there are, what came of each,
                   which are under way
``lanes``          which ranks and iterations a timeline shows: all, or one of each class that fared exactly
                   alike, and says so
``message_data``   messages as a timeline shows them: those that shown ranks sent, each in a row below its
                   rank
``packing``        columns as one compressed text that a browser unpacks without a library
``run_data``       what a report shows of one run: plain values, and columns for the browser
``series_data``    queues and rates over time, as a report shows them: so many lines and times that the page
                   stays small
``server``         ``cosim view``: a folder's runs as pages of a server that listens on this machine's
                   loopback only
``size_data``      times and slowdowns of messages by size, where the run keeps them: exact quantiles of
                   classes of sizes
``source``         a run as the report sees it: summary, settings, columns, whether it lies in memory or in
                   a folder
``sweep_data``     what a report shows of a sweep: every cell's means, and its folder read back
``user_data``      what each of a link's largest pairs of endpoints sent most for, where the run keeps its
                   messages
=================  ======================================================================
"""
