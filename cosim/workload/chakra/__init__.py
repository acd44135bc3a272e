"""Chakra execution traces, MLCommons' format for what one rank of a job did.

=============  =====================================================================
``importer``   kind ``chakra``: traces of all ranks as a workload
``custom``     a collective algorithm written as SEND, RECV and COMP nodes, as columns
``nodes``      one rank's nodes as operations, with ASTRA-sim's semantics
``reader``     the .et file format
``et_def_pb2`` generated from ``proto/cosim/chakra/v1/et_def.proto``
=============  =====================================================================
"""
