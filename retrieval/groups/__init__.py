"""Links between photos of one collection, and groups made from them."""
