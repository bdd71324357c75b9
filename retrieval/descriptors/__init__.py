"""Patches in, descriptors out: the contract, every descriptor that keeps it, and the registry."""
