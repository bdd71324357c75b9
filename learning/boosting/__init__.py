"""Trzcinski12: weak learners, AdaBoost, the metric."""
