"""Kernels of loads and stores: MSCCL++'s execution plans, and plans of our own.

============  ======================================================================
``plan``      a plan: what thread blocks load, store, signal and wait for
``read``      MSCCL++'s JSON to a plan
``order``     who waits for whom, and whether all steps can run
``prove``     the proof of a plan: its data, and every order of its steps
``messages``  a plan as a template: a row for each load or store of a range
``algorithm`` ``{algorithm: mscclpp, path: plan.json}``
``kernels``   kernels that are known, as plans: by multicast, stores, loads and packets
============  ======================================================================

Rows of a plan say in their channel which thread block has them, and whether the receiver asks for the data
(``enum device_channel`` of the kernel). The device network reads that, and carries them line by line; to all
other networks a channel is a channel, and a row is a message of its size.
"""
