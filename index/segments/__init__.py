"""Segments: their files, what they say of themselves, and how they are written, read and mended."""
