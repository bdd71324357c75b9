"""Tables (CSV, RFC 4180): reader, meanings of columns, import and export of metadata."""
