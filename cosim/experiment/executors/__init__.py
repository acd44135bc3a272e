"""Where runs are run: processes of this machine, Dask's workers, jobs of Slurm, or a plug-in's way."""
