"""Memory beyond a GPU's own: how long loads and stores of it take, and who waits for whom there."""
