"""Memory beyond a GPU's own: how long loads and stores of it take, and who waits for whom there.

============  ======================================================================
``contract``  what remote memory is: which device serves an endpoint, and how long an access holds it
``fabric``    memory ``fabric``: memory nodes are endpoints of the topology, and accesses are messages to
              and from them
``per_node``  memory ``per_node``: ASTRA-sim's ``PER_NODE_MEMORY_EXPANSION``
``per_npu``   memory ``per_npu``: ASTRA-sim's ``PER_NPU_MEMORY_EXPANSION``
``pool``      memory ``pool``: ASTRA-sim's ``MEMORY_POOL``
============  ======================================================================
"""
