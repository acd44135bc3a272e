"""InfraGraph infrastructures, as topologies."""
