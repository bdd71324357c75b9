"""Links between photos of one collection, and albums made of them."""
