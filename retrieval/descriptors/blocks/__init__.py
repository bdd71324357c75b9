"""Descriptors of the blocks of Brown11: transform, spatial pooling, embedding, post-normalization."""
