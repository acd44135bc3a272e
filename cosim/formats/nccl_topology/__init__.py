"""NCCL's own topology dumps of a host.

==========  ======================================================================
``system``  one server as NCCL or RCCL sees it, read from its topology XML: GPUs, what forwards, links and
            ports
==========  ======================================================================
"""
