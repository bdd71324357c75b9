"""What is pinned: its hashes, and the bill of materials that is made of it."""
