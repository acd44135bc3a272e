"""The protocol's messages, generated from ``proto/cosim/protocol/v1``; its service and version."""

SERVICE = "cosim.protocol.v1.NetworkSimulatorService"
VERSION = (1, 0)
"""Major and minor, as spoken here."""
