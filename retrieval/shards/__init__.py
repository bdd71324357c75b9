"""Search on several machines: shards, their holders, and one answer from all."""
