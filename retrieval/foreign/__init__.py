"""Features of other programs, read from their files in place of being extracted."""
