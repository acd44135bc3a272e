"""Training scripts and kernels measured on one GPU, beside what cosim says of them.

``measure.py`` (with ``timed.py``, ``kernels.py``) runs on the GPU; ``h100`` is what it wrote on an H100 80GB
HBM3 of 700 W under PyTorch 2.11.0 (CUDA 13.0, cuDNN 9.19) on 2026-11-28, all in one go.
"""
