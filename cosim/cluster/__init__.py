"""Who shares: several jobs on one fabric, and which endpoints each of them gets."""
