"""Patches in, descriptors out: the contract, the descriptors, and the registry."""
