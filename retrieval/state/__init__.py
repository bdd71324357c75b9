"""Data of the user, outside all collections."""
