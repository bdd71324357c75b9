"""Measuring: protocols and their figures."""
