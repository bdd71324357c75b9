"""The steps of a search, on plain arrays: regions, descriptors, words, scores, matches, verification."""
