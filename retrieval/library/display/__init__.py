"""Display of results: self-contained HTML for notebooks, and matplotlib figures."""
