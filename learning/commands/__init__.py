"""The commands that learn, one a file."""
