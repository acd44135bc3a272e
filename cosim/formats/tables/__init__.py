"""Workloads as tables, CSV or Parquet: nothing of a job is lost.

=================  ==========================================================================
``schema``         the tables and their columns
``files``          reading and writing them, as CSV or as Parquet
``rows``           a workload as rows
``importer``       kinds ``csv`` and ``parquet``: rows as a workload
=================  ==========================================================================
"""
