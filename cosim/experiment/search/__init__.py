"""Of a sweep, the best choice: what can't be is refused, what can't win isn't run."""
