"""Training cut by layers: profiles of layers, PipeDream's partitioner, what a plan needs and takes."""
