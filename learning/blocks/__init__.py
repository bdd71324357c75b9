"""Brown11: pairs, Powell's method, embeddings."""
