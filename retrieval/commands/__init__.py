"""The command line: options, and what is printed."""
