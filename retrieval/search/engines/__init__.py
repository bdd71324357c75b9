"""Ways to rank the photos of a collection for a query: the contract, one file an engine, and the registry."""
