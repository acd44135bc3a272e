"""How long kernels take: kernels, the time of one on a GPU, what is known of how well that fits.

==================  ==========================================================================
``contract``        what a GPU of a scenario is
``kernels``         a kernel: matrix product, attention or memory-bound; FLOPs, bytes, shape
``efficiency``      the compute model's named parameters, and how they were calibrated
``gpus``            GPUs by name, peaks from their data sheets; a table that was measured
``timer``           picoseconds of kernels on a GPU, and of their launches on the host
``calibrate``       measures a GPU; ``collectives``: and NCCL between several
==================  ==========================================================================
"""
