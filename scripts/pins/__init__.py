"""Pinned packages: hashes, and the bill of materials."""
