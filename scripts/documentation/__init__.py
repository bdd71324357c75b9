"""Generators of pages of the documentation, and extensions of its Sphinx site."""
