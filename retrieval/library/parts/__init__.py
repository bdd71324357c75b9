"""The parts that a search is made of, on plain arrays: regions, descriptors, words, scores, matches, verification."""
