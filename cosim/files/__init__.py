"""Files that people write, read so that each value keeps its line.

=================  ======================================================================
``located_yaml``   YAML: values, and the line of each
``located_xml``    XML: elements, and the line of each
``text``           text, whole or line by line
``cache``          what is made once and kept for later runs, in the user's cache: one process makes it,
                   others wait
``catalogue``      a catalogue: one YAML file for each name, in a folder of the package, as a user's file
                   would be
``folder``         a folder of results: who writes to it, which of its files are cosim's, and one step from
                   old to new ones
``import_report``  what a reader of somebody else's file says to its user: what was read, ignored, assumed
                   and is doubtful
``lock``           locks of files, which end with the process that has them
``reads``          which files a run reads: what Python opens and lists meanwhile, in whatever thread
``trust``          whether code that a file names may be run: asked for by commands, never for who calls
                   cosim from Python
=================  ======================================================================
"""
