"""Protocols of retrieval benchmarks: ground truths, and scores of rankings."""
