"""Runs of retrieval benchmarks: photos, vocabulary, queries, and stored results."""
