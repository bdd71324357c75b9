"""Changes of a sound collection: add, remove, compact, retrain."""
