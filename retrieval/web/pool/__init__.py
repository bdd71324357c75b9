"""Worker processes, and the queue before them."""
