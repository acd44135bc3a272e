"""What is done with several runs of one scenario: each study says which runs it needs, and what they say.

================  ======================================================================
``contract``      what a study is: it asks for runs, and reads what it is told of them
``perform``       ``cosim.study``: a study's runs, from one store and on one executor
``alone``         each job by itself: slowdowns and Jain's index
``networks``      the same designs on several networks
``open_loop``     recorded messages at their recorded times
``what_matters``  the scenario again for each rate, time and efficiency in it, with 1 % more of that
================  ======================================================================
"""
