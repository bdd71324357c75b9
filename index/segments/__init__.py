"""Segments: their files and descriptions, writing, reading and repair."""
