"""Check and repair of damage; only the library and commands may import it."""
