"""Background jobs: a persistent queue, and its runner."""
