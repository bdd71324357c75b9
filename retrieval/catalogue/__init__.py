"""All SQL: tables, migrations, names, filters, pages, and what was imported; knows no array file."""
