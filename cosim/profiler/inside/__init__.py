"""What runs in the process of a profiled script: the only part of cosim that imports torch."""
