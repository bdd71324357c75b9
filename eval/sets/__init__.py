"""Published sets: download, unpacking, and location."""
