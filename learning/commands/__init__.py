"""The commands that learn."""
