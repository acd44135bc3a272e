"""A report of a run as one HTML file: what came of it, its timeline, critical path, fabric and traffic."""
