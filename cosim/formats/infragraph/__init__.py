"""InfraGraph infrastructures, as topologies.

============  ======================================================================
``mapping``   a YAML file whose unknown keys are named rather than refused: mappings of texts that know
              their lines
``model``     InfraGraph descriptions expanded: devices of components, instances of devices, and the edges
              between them
``parts``     what InfraGraph descriptions are made of: devices, components, edges between endpoints with
              slices
``topology``  InfraGraph: a data centre as devices, instances and edges, in YAML
              (github.com/Keysight/infragraph)
``write``     any topology as InfraGraph YAML, which ``InfraGraph`` reads back
============  ======================================================================
"""
