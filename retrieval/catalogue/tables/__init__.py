"""Tables (CSV, RFC 4180): their one reader, what their columns are for, and metadata in and out of them."""
