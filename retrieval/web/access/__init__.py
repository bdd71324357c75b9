"""Access control."""
