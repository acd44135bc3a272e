"""Built-in congestion controls, one a file, each with its paper and that paper's defaults."""
