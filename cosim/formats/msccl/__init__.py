"""MSCCL's XML: a collective algorithm as thread blocks of GPUs, read, proved, timed and written.

The format is that of MSCCL (github.com/Azure/msccl) and its compiler (Cowan et al., "MSCCLang: Microsoft
Collective Communication Language", ASPLOS 2023, doi:10.1145/3575693.3575724).
"""
