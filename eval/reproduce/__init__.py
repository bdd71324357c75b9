"""Experiments as command lines that build on each other: what they are, how they are run, the page they end in."""
