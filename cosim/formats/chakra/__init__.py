"""Chakra execution traces, MLCommons' format for what one rank of a job did.

=====================  ======================================================================
``file``               the .et file format
``read``               kind ``chakra``: traces of all ranks as a workload
``read_nodes``         one rank's nodes as operations, with ASTRA-sim's semantics
``read_messages``      a collective algorithm written as SEND, RECV and COMP nodes, as columns
``algorithm``          a collective algorithm in such files; ``custom``: proved and made a template
``write_collectives``  format ``chakra``: operations as nodes; ``write_messages``: messages as nodes
``et_def_pb2``         generated from ``proto/cosim/chakra/v1/et_def.proto``
``attributes``         attributes of a Chakra node, with the conversions that FeederV3 makes and those it
                       refuses
``folder``             which file is which rank's: ``PREFIX.<rank>.et``, as ASTRA-sim names them, or
                       ``PREFIX.<rank>.json``
``groups``             process groups of a trace: ASTRA-sim's communicator-group file, or PyTorch's metadata
                       inside the trace
``json_file``          Chakra traces as JSON: what ``chakra_jsonizer`` writes, and the graphs that Chakra's
                       feeder reads
``roofline``           ASTRA-sim's roofline: what a computation takes by its operations and the bytes of its
                       tensors
``write_nodes``        Chakra nodes as they stand in a file, with the attribute types that upstream's
                       generator uses
=====================  ======================================================================
"""
