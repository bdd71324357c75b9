"""Features of photos: extraction, encoding of their geometry for segments, and the staging folder between the two."""
