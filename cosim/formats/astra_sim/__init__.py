"""ASTRA-sim's whole input: Chakra traces, network, system, memory and process groups, and a command line."""
