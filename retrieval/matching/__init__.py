"""Matching of two photos by their features; without a collection."""
