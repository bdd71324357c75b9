"""What Cairn keeps of its user, outside all collections."""
