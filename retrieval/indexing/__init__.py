"""What changes a sound collection: add, remove, compact, retrain."""
