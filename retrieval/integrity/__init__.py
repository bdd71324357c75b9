"""Damage: what looks for it, and what mends it; only commands may import it."""
