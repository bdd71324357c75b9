"""Images in, ranked and geometrically verified images out."""
