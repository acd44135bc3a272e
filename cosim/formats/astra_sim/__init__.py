"""ASTRA-sim's whole input: Chakra traces, network, system, memory and process groups, and a command line.

============  ======================================================================
``config``    format ``astra-sim``: everything that ASTRA-sim's analytical backends are started with
``records``   what an ASTRA-sim run said, as the records of a run of ours
``run``       run the user's ASTRA-sim on what was exported, and bring its times back: ``--to astra-sim
              --run``
``topology``  ASTRA-sim's network notation: 1 to N dimensions, as in its ``network.yml``
============  ======================================================================
"""
