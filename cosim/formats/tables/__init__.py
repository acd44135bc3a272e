"""Workloads as tables, CSV or Parquet: nothing of a job is lost.

==========  ======================================================================
``schema``  the tables and their columns
``file``    reading and writing them, as CSV or as Parquet
``rows``    a workload as rows
``read``    kinds ``csv`` and ``parquet``: rows as a workload
``write``   formats ``csv`` and ``parquet``: jobs as tables of operations and dependencies
==========  ======================================================================
"""
