"""Flow records as CSV: a run's messages, a row each."""
