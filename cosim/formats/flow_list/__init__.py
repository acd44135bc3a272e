"""Flow lists: a line for each flow, in and out."""
