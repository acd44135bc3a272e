"""Packet captures: a run's messages as RoCEv2 packets."""
