"""Protocols of retrieval benchmarks: their ground truths, and how rankings are scored by them."""
