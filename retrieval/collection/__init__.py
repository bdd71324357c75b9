"""One folder: the names in it, options, identity, lock, seal, segments, and the open collection."""
