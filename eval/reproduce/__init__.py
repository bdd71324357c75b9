"""Experiments as command lines that build on each other: plans, runs, and pages."""
