"""The store: every run under the hash of what determines it, so that no question is computed twice.

::

    STORE/store.json                   which store this is
    STORE/runs/4f/4f0c...-9a3e.json    one run: what was asked, what came of it; written last
    STORE/parts/4f/4f0c...-9a3e/       summary.json, and of a single run all that `cosim run --out` writes

The name is the hash of the question (:mod:`.question`: the scenario, plug-ins' sources, version, simulator's
build) and that of the files that the run read (:mod:`.reads`). Every file appears whole or not at all, and
who comes second finds what the first wrote; so any number of processes may share a store.

==========  ======================================================================
``check``   some of a store's runs, run again: whether it tells the truth
``claims``  one process answers a question at a time: who comes second waits, and finds what the first has
            stored
``closed``  whether all that a plug-in reads is seen: else its runs are run, and not stored
``entry``   one run of a store, as a small file: what was asked, what came of it, and what it rests on
``place``   where a store lies: a folder of this machine, or any address that fsspec knows
            (``s3://bucket/runs``)
``table``   what a store has, for people: a table, a part of it, one run
``trials``  trials of a sweep, found in a store and kept in one
==========  ======================================================================
"""
