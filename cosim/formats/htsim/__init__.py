"""htsim's connection matrices: ``matrix`` reads them, ``importer`` makes them a workload."""
