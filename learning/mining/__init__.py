"""Matches from unlabelled photos: propose and map pairs, or render views; compute overlaps; assemble a file."""
