"""The FTS5 table of words, and its shadow tables; their SQL is compared exactly: see `objects`."""

WORDS = "photo_words"
"""What the table of words is called, in every database."""

MADE_BY = (
    f"CREATE VIRTUAL TABLE {WORDS} USING "
    "fts5(text, detail=none, columnsize=0, prefix='1 2 3 4 5 6', tokenize='ascii')"  # texts are words, spaces between
)
"""What makes it."""

ENTRIES = frozenset(
    {
        ("table", WORDS, WORDS, MADE_BY),
        *(
            ("table", f"{WORDS}_{name}", f"{WORDS}_{name}", f"CREATE TABLE '{WORDS}_{name}'({columns}")
            for name, columns in (
                ("data", "id INTEGER PRIMARY KEY, block BLOB)"),
                ("idx", "segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID"),
                ("content", "id INTEGER PRIMARY KEY, c0)"),
                ("config", "k PRIMARY KEY, v) WITHOUT ROWID"),
            )
        ),
    }
)
"""Rows of `sqlite_schema` that it has: type, name, table and SQL."""
