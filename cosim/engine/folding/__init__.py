"""Folding: ranks that all fare the same are simulated once and multiplied, where that is provably exact.

================  ======================================================================
``find``          finding what can be folded: for each mesh axis the smallest step whose translations are a
                  symmetry
``folding``       a folding: a job of which one rank of each orbit is simulated, and what that says of the
                  whole
``links``         do a job's messages look the same from every replica? Links under translations
``template``      folding a template: the rows of the representatives only, where it looks the same from
                  every rank
``translations``  translations of a mesh: which ranks stand for which
================  ======================================================================
"""
