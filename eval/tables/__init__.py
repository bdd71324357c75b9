"""Tables of the documentation: staged features, cells, results."""
