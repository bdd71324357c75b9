"""Yan13: triplets, gradients, the problem, learning."""
