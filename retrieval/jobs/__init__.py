"""Long work in the background: a queue that outlives its process, and what runs the commands in it."""
