"""Simonyan14: dual averaging, rings and projection with labels; whitening; stages, grid and records that both share."""
