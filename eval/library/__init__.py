"""Measurements, as functions of `import cairn`; the commands call them too."""
