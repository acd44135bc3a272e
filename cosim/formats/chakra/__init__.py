"""Chakra execution traces, MLCommons' format for what one rank of a job did.

=====================  =====================================================================
``file``               the .et file format
``read``               kind ``chakra``: traces of all ranks as a workload
``read_nodes``         one rank's nodes as operations, with ASTRA-sim's semantics
``read_messages``      a collective algorithm written as SEND, RECV and COMP nodes, as columns
``algorithm``          a collective algorithm in such files; ``custom``: proved and made a template
``write_collectives``  format ``chakra``: operations as nodes; ``write_messages``: messages as nodes
``et_def_pb2``         generated from ``proto/cosim/chakra/v1/et_def.proto``
=====================  =====================================================================
"""
