"""Files that people write, read so that each value keeps its line.

==================  ==========================================================================
``located_yaml``    YAML: values, and the line of each
``located_xml``     XML: elements, and the line of each
``text``            text, whole or line by line
``report``          what a reader read, ignored and assumed
==================  ==========================================================================
"""
