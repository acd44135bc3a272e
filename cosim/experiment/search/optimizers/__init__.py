"""Optimizers: which point of a design to run next.

============  ======================================================================
``bounds``    branch and bound on a list: the most promising first, until none is
``in_order``  every point
``optuna``    Optuna's samplers, its study kept in a journal where one is named
============  ======================================================================
"""
