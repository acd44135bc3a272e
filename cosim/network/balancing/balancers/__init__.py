"""The balancers that are built in, one file each."""
