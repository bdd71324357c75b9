"""Approximate k-means over streamed descriptors, in this process or on the workers of a cluster."""
