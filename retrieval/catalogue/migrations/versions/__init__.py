"""The revisions, each as it was when it was first released: they import nothing of the catalogue as it is now.

No revision rebuilds a table in SQLite (Alembic's batch mode): with foreign keys on, dropping the old table would delete
the rows that refer to it, and they cannot be turned off inside a transaction.
"""
