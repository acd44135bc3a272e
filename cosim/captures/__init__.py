"""Captures: what was measured of a network's traffic, read into columns.

:func:`cosim.captures.read.read_capture` tells by a file's content which format it has. Formats are plug-ins:
``contract`` says what they are, ``formats`` has those that come along.

===============  ======================================================================
``connections``  transfers out of packets: messages of RoCEv2, bursts of TCP and UDP
``counters``     counters of ports: octets in and out, sample by sample, from ``.npz`` or CSV
``flows``        flow records: CSV with named columns, Zeek's ``conn.log``, nfdump's CSV, HPCC's flow lists
``hosts``        names of hosts: a YAML file that says what each address is called; several addresses may be
                 one host
``inspector``    NCCL Inspector's JSON, format v4.0: what each rank logged of each collective and send
``nccl_log``     what NCCL prints with NCCL_DEBUG=INFO: rings, trees, connections
``packets``      headers of packets, a block of packets at a time: who sends to whom, how much, in which
                 connection
``pcap``         packet captures: pcap, in micro- and nanoseconds, and pcapng, read in blocks of bounded
                 memory
===============  ======================================================================
"""
