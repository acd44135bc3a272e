"""Plug-ins of somebody else's: a package with one of each kind, classes in files, and wrong ones."""
