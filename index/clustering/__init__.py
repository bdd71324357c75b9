"""Approximate k-means over descriptors that are streamed, here or by the workers of a cluster."""
