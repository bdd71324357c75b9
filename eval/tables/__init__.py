"""The tables of the documentation: staged features, cells, results."""
