"""Which files are photos, and their pixels: listing, decoding, thumbnails, watching."""
