"""How a search is shared among machines: shards, who holds them, and one answer of them all."""
