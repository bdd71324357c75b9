"""Several collections in one server."""
