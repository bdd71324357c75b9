"""Simonyan14: dual averaging, rings and projection with labels; the stages, grid and records that both kinds share."""
