"""Network simulators elsewhere: the seam of :mod:`cosim.network.simulator` over gRPC.

The client, from a run to the socket:

======================  ======================================================================
``remote``              what a scenario says of a simulator elsewhere
``settings``            which server, what is asked of it, deadlines and recovery
``client``              :class:`~cosim.protocol.client.RemoteNetwork`, a session behind the seam
``injector``            flows get ids, answers are checked; ``open_groups``: groups in flight, as columns;
                        ``advance_answer``: what a server answers
``partial_group``       a group given piece by piece, within the credit that the server grants
``recovery``            log, restart, replay; ``replay_log``: the file; ``replay_plan``: it as few advances
``client_session``      one stream of one server; ``connection``: bytes, deadlines, errors; ``frames``: bytes
                        over a socket beside the stream, of the server, too
``launcher``            starts servers; ``address``: where they listen; ``refusal``: errors on the wire
======================  ======================================================================

The server, from the socket to a network:

======================  ======================================================================
``server``              serves any network of this process
``session``             requests in order, answers in parts
``served_network``      flat flows in, completions out
``dependency_tracker``  releases flows when what they wait for is there
``advance_parts``       advances as messages that fit: flows, paths and starts are split over parts where
                        they must be
``flat_flows``          flows as flat columns, and the same as protobuf messages
``link_events``         links that fail, slow down and come back, on the wire and back; and the detours
                        round them
``live_changes``        changes of links and routes that nobody knew of when a session opened, on the wire
                        and back
``rdma``                ``{model: ns3_rdma, control: dcqcn, ...}``: RDMA in ns-3, packet by packet
``own_control``         a congestion control of the user's, which the server loads or asks
``sample``              what a network is looked at for on the wire: queues of links, rates of connections
``unix_socket``         a unix socket's file: taken only where nobody answers, removed only by whoever made
                        it
======================  ======================================================================

Of both: ``columns`` (flows as columns), ``messages`` (as messages that fit), ``topology_messages``, ``pages``
(rows by id, in pages that go when all on them are done), ``digest``, and ``v1``, the generated messages.
``adapters`` are simulators that come with cosim, built where they are used; ``installs`` those that a user
builds. :mod:`cosim.testing` has the checks for servers.
"""
