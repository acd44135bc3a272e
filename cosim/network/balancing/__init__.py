"""WHICH WAY: load balancers, which choose among equal-cost paths while a run goes on.

==============  ======================================================================
``contract``    what a balancer is
``balancers``   those that are built in, one file each
``candidates``  which paths a pair has
``ask``         asking a balancer that is written in Python, its answers checked
``session``     what a network of a run has for its balancer
``named``       a balancer as a setting of a network: ``balancer: spray``, ``{kind: flowlet, gap: 50us}``,
                ``{plugin: my.py:Mine}``
==============  ======================================================================
"""
