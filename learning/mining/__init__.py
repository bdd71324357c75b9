"""Matches made from unlabelled photos: propose pairs, map, overlap, assemble, the file of matches."""
