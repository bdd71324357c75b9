"""Published sets: where they are had, how they are unpacked, and where they lie."""
