"""Detectors of regions: the contract, one file a detector, and the registry."""
