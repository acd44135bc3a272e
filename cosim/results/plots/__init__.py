"""Figures for print: what runs are asked, as lines with units, and drawn by matplotlib.

==============  ======================================================================
``chart``       what a figure shows, before anything is drawn: lines over an axis, each axis in one unit; as
                CSV
``charts``      charts of runs: completion times, slowdowns, queues, rates, throughput, goodput; seeds as a
                band
``operations``  a timeline for print: what ranks did in the last iteration, computation above communication
``plot``        ``cosim.plot``: runs, or a sweep, as axes of matplotlib
==============  ======================================================================
"""
