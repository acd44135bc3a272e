"""Where runs are run: processes of this machine, Dask's workers, jobs of Slurm, or a plug-in's way.

===============  ======================================================================
``call``         a call that can be sent anywhere, and what it gives
``contract``     what an executor is: it has calls called somewhere and hands on what they give, in any
                 order
``dask``         workers of a Dask scheduler, on this machine or any others
``local``        processes of this machine
``slurm``        jobs of Slurm, as arrays; submitit submits them and brings back what they give
``slurm_queue``  which of submitit's jobs have ended: those that left what they gave, and those that Slurm
                 has no more
``worker``       a process beside this one that runs one call after another, and ends with this one, by
                 whatever death
===============  ======================================================================
"""
