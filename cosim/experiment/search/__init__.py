"""The best choice of a sweep. Invalid choices are refused; those that can't win are not run.

===================  ======================================================================
``bound``            what a run takes at least, known without running it: a closed form of what its ranks
                     compute and send, each message alone on the quickest links there are, and of what they
                     wait for each other
``collective_time``  what a collective takes at least: each message alone, over the quickest links there are
``contract``         what an optimizer is: it is asked which point of a design to run next, and told what
                     came of it
``design``           a design: a sweep whose axes are what there is to choose, by which objectives, within
                     which constraints
``path``             when each program ends at the earliest: its operations in order, and what it waits for
                     across programs
``points``           the points of a design before any is run: what each is known to have, and why some
                     can't be
``quickest``         what the fabric lets an endpoint send at most, and how soon a message is there at least
``search``           ``cosim.search``: a sweep of which only that is run which may be the best
``tries``            points of a design, run: all seeds of one, and several together where the design says
                     so
``optimizers/``      which point of a design to run next
===================  ======================================================================
"""
