"""What issues kernels: a host's processor under a framework, and how long it takes for an operator.

==================  ==========================================================================
``contract``        what a host of a scenario is
``hosts``           a host's numbers, and a file that has them
``catalogue``       hosts by name, with what their numbers were fitted to
==================  ==========================================================================
"""
