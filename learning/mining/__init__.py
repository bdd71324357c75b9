"""Matches made from unlabelled photos: propose pairs and map them, or render views; overlap, assemble, the file."""
