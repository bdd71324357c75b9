"""Catalogues of the first format, made by its own SQL without current code."""

import hashlib
import random

import sqlalchemy as sa

TABLES = (
    """CREATE TABLE segments (
    id {id},
    folder VARCHAR(255) NOT NULL,
    images INTEGER NOT NULL,
    features BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    vocabulary_fingerprint VARCHAR(64) NOT NULL,
    descriptor_fingerprint VARCHAR(64) NOT NULL,
    created VARCHAR(40) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (folder)
)""",
    'CREATE TABLE settings ("key" VARCHAR(255) NOT NULL, value TEXT NOT NULL, PRIMARY KEY ("key"))',
    """CREATE TABLE images (
    number BIGINT NOT NULL,
    path TEXT NOT NULL,
    path_hash BIGINT NOT NULL,
    name VARCHAR(1024),
    sha256 VARCHAR(64),
    size BIGINT,
    mtime_ns BIGINT,
    width INTEGER,
    height INTEGER,
    features INTEGER NOT NULL,
    state VARCHAR(16) NOT NULL,
    reason TEXT,
    segment_id INTEGER,
    position INTEGER,
    PRIMARY KEY (number),
    CHECK (state IN ('indexed', 'failed', 'removed')),
    UNIQUE (name),
    FOREIGN KEY(segment_id) REFERENCES segments (id)
)""",
    "CREATE INDEX ix_images_path_hash ON images (path_hash)",
    "CREATE INDEX ix_images_segment_id ON images (segment_id)",
)
IMAGE_COLUMNS = (
    *("number", "path", "path_hash", "name", "sha256", "size", "mtime_ns", "width", "height"),
    *("features", "state", "reason", "segment_id", "position"),
)
SETTINGS = {"cairn.format": "1", "cairn.next_number": "9000", "vocabulary": "2 %", "Empty": ""}
# Signed value of `b2sum -l 64` for this path: a3d986fc43671ab2.
KNOWN_PATH, KNOWN_HASH = "/photos/石 'o\"%s.jpg", -6640127757560374606

Rows = dict[str, list[dict[str, object]]]


def rows_of_format_1(images: int = 4000) -> Rows:
    """The same rows at every call: images of every state, with and without each value that may be missing."""
    random_number = random.Random(7)
    segments = [
        {
            "id": i,
            "folder": f"{i:06d}",
            "images": 100,
            "features": 2**33 + i,
            "bytes": 2**40,
            "vocabulary_fingerprint": "a" * 64,
            "descriptor_fingerprint": "b" * 64,
            "created": "2025-01-02T03:04:05+00:00",
        }
        for i in (1, 2, 5)
    ]
    rows = []
    for i in range(images):
        state = ("indexed", "indexed", "failed", "removed")[i % 4]
        path = KNOWN_PATH if i == 0 else f'/photos/{i // 100}/it\'s "{i}"\n%s \U0001f5ff.jpg'
        path_hash = KNOWN_HASH if i == 0 else _hash(path)
        in_segment = state != "failed"
        values = (
            *(2 * i, path, path_hash, f"{i}/石.jpg" if state == "indexed" else None),
            *((f"{i:064x}", 2**40 + i, 2**60 + i) if i % 5 else (None, None, None)),
            *((4000 + i, 3000) if in_segment else (None, None)),
            *(i % 7, state, None if in_segment else f"It is truncated ({i})."),
            *((random_number.choice((1, 2, 5)), i) if in_segment else (None, None)),
        )
        rows.append(dict(zip(IMAGE_COLUMNS, values, strict=True)))
    for segment in segments:
        segment["images"] = sum(row["segment_id"] == segment["id"] for row in rows)
    settings: list[dict[str, object]] = [{"key": key, "value": value} for key, value in sorted(SETTINGS.items())]
    return {"segments": segments, "settings": settings, "images": rows}


def _hash(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "big", signed=True)


def make_format_1(address: str, rows: Rows) -> None:
    """Make the catalogue in an empty database."""
    engine = sa.create_engine(address)
    is_sqlite = engine.dialect.name == "sqlite"
    with engine.begin() as connection:
        if is_sqlite:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        for statement in TABLES:
            connection.exec_driver_sql(statement.replace("{id}", "INTEGER" if is_sqlite else "SERIAL"))
        for table, values in rows.items():
            names = list(values[0])
            columns, places = ", ".join(f'"{name}"' for name in names), ", ".join(f":{name}" for name in names)
            connection.execute(sa.text(f"INSERT INTO {table} ({columns}) VALUES ({places})"), values)
        if not is_sqlite:
            connection.exec_driver_sql("SELECT setval('segments_id_seq', 5)")
    engine.dispose()


def rows_in(address: str, like: Rows) -> Rows:
    """Contents of a database in these tables and columns."""
    engine = sa.create_engine(address)
    found: Rows = {}
    with engine.connect() as connection:
        for table, values in like.items():
            names = list(values[0])
            columns = ", ".join(f'"{name}"' for name in names)
            selected = connection.execute(sa.text(f"SELECT {columns} FROM {table}")).mappings()
            found[table] = sorted((dict(row) for row in selected), key=lambda row: row[names[0]])
    engine.dispose()
    return found
