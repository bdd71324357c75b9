"""Points scanned by short codes, for those near a query."""
