"""WHICH WAY: load balancers, which choose among equal-cost paths while a run goes on.

==============  ======================================================================
``contract``    what a balancer is
``balancers``   those that are built in, one file each
``state``       connections, pairs, paths and batches, as columns
``candidates``  which paths a pair has
``ask``         asking a balancer, its answers checked
``choosing``    the part of that which is compiled
==============  ======================================================================
"""
