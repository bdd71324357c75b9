"""Names and files from untrusted sources: valid names, and safe opening."""
