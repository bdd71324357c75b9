"""Names and files that others have written: what a name may be, and how a file is opened."""
