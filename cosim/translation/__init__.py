"""Translation: a scenario's traffic for other simulators, and what each of them can't be told.

``cosim.translate(scenario, to="goal", out="traffic")`` and ``cosim translate`` end up here.

=================  ======================================================================
``contract``       what a format is, and how to plug one in (entry points ``cosim.formats``)
``says``           which parts of our model a format can say; what it can't is counted by itself
``source``         what a format is given: topology, jobs on endpoints, planner, a run on request
``numbering``      ranks by their number, or by their endpoint's
``flat``           the message level: a rank's messages as one graph; ``messages``: what its formats share
``loss_report``    what a translation wrote, and what the target was not told
``message_level``  what the message-level formats share: the flat view, and what all of them can and can't
                   say
=================  ======================================================================
"""
