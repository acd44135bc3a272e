"""How long kernels take: kernels, the time of one on a GPU, what is known of how well that fits.

=====================  ======================================================================
``contract``           what a GPU of a scenario is
``kernels``            a kernel: matrix product, attention or memory-bound; FLOPs, bytes, shape
``efficiency``         the compute model's named parameters, and how they were calibrated
``gpus``               GPUs by name, peaks from their data sheets; a table that was measured
``timer``              picoseconds of kernels on a GPU, and of their launches on the host
``calibrate``          measures a GPU; ``collectives``: and NCCL between several
``catalogue``          the catalogue of GPUs: one file each in ``data/``, of the form that `cosim calibrate`
                       and `cosim fit` write
``device_name``        which GPU of the catalogue a device is, by what its driver says
``job_clock``          the clock at which a job keeps within its GPU's power limit
``kernel_share``       what a job's kernels of one kind take in all: the job, built for a GPU that takes
                       time for no other
``measured_kernels``   times kernels on a device with PyTorch: what ``calibrate`` fits a GPU's numbers to
``measured_training``  what kernels take in a training, measured with PyTorch: they are slower there than
                       alone
``neighbour``          what a GPU reaches of its peaks that only its data sheet is known of: a measured
                       neighbour's, as far as its power and its multiprocessors go
=====================  ======================================================================
"""
