"""Options that are declared once for the command line, Python and the server."""
