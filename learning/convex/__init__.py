"""Simonyan14 with labels: dual averaging, rings, projection, the grid of models and their records."""
