"""Runs of retrieval benchmarks: photos, vocabulary, queries, and what is kept of them."""
