"""Ground-truth formats, average precision and benchmark runs."""
