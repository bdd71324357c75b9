"""How PostgreSQL answers what is asked of a catalogue of many photos: by which indexes, reading how much."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from retrieval.catalogue.browsing import folders_of, numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones, mark_missing, quantisation_errors
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import import_values, imported_values, key_counts, metadata_of, tag_counts
from retrieval.catalogue.photos import (
    counts_of_photos,
    dates_added,
    first_and_last_added,
    missing_photos,
    names_in_order,
    numbers_of_names,
    paths_of,
    photo_of_content,
    photo_of_name,
    rows_of,
)
from retrieval.catalogue.schema import ImageRow, SegmentRow, value_hash_of
from retrieval.catalogue.segment_rows import commit_segment, segments_and_tombstones, tombstones_in
from retrieval.catalogue.settings import reserve_numbers
from retrieval.catalogue.words import make_words
from retrieval.metadata.fields import Metadata
from retrieval.metadata.places import Near

PHOTOS, FOLDERS, TAGS, FAILED, REMOVED = 30_000, 100, 40, 50, 70
# Photo i is in folder i % FOLDERS; its tags are i % TAGS and, of every second one, "frequent".
FILL = (
    f"""INSERT INTO segments (folder, images, features, bytes, vocabulary_fingerprint, descriptor_fingerprint, created)
    SELECT lpad(i::text, 6, '0'), {PHOTOS // 10}, {PHOTOS}, 1, 'v', 'd', '2026' FROM generate_series(1, 10) i""",
    f"""INSERT INTO images (number, path, path_hash, name, folder, sha256, size, mtime_ns, width, height, features,
        state, segment_id, position, quantisation_error, taken, latitude, longitude, camera, title, date_added)
    SELECT i, '/p/' || name, i * 7919, name, regexp_replace(name, '/[^/]*$', ''), lpad(to_hex(i), 64, '0'), i, i,
        6000, 4000, 10, 'indexed', (SELECT min(id) FROM segments) + i / {PHOTOS // 10}, i % {PHOTOS // 10}, 1.5,
        (1990 + i % 30) || '-05-17', CASE WHEN i % 2 = 0 THEN i % 80 END, CASE WHEN i % 2 = 0 THEN i % 170 END,
        'Canon ' || i % 40, CASE WHEN i % 50 = 0 THEN 'Canal ' || i END, '2026-01-0' || 1 + i % 9
    FROM (SELECT i, (i % {FOLDERS}) || '/sub/IMG_' || lpad(i::text, 8, '0') || '.jpg' AS name
        FROM generate_series(0, {PHOTOS - 1}) i) AS names""",
    """INSERT INTO metadata (number, source, key, position, value, value_hash)
    SELECT number, 'file', 'taken', 0, taken, number * 31 FROM images
    UNION ALL SELECT number, 'file', 'camera', 0, camera, hashtextextended(camera, 0) FROM images""",
    f"UPDATE images SET state = 'removed', name = NULL, folder = NULL WHERE number < {REMOVED}",
    f"""INSERT INTO images (number, path, path_hash, features, state, reason)
    SELECT i, '/failed/' || i, i * 7919, 0, 'failed', 'It is empty.'
    FROM generate_series({PHOTOS}, {PHOTOS + FAILED - 1}) i""",
    f"UPDATE settings SET value = '{PHOTOS + FAILED}' WHERE key = 'cairn.next_number'",
)
TAGGED = "INSERT INTO metadata SELECT number, 'file', 'tag', {at}, '{tag}', {hash} FROM images WHERE {which}"


@pytest.fixture(scope="module")
def catalogue(postgresql: Callable[[], str]) -> Iterator[Catalogue]:
    with Catalogue.open(postgresql(), create=True) as catalogue:
        tags = [(0, f"tag {i}", f"number % {TAGS} = {i}") for i in range(TAGS)] + [(1, "frequent", "number % 2 = 0")]
        with catalogue._database.transaction(write=True) as session:
            for statement in FILL:
                session.execute(sa.text(statement))
            for at, tag, which in tags:
                session.execute(sa.text(TAGGED.format(at=at, tag=tag, hash=value_hash_of(tag), which=which)))
            make_words(session)
        engine = sa.create_engine(catalogue.address, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text("VACUUM ANALYZE"))
        engine.dispose()
        yield catalogue


def plans_of(catalogue: Catalogue, ask: Callable[[], object]) -> list[dict[str, Any]]:
    """The nodes of the plans of all statements on photos and metadata that a question issues."""
    nodes: list[dict[str, Any]] = []

    def walk(node: dict[str, Any]) -> None:
        nodes.append(node)
        for below in node.get("Plans", ()):
            walk(below)

    def explain(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        if statement.startswith(("SELECT", "UPDATE", "DELETE")) and ("images" in statement or "metadata" in statement):
            with connection.connection.driver_connection.cursor() as other:
                for one in parameters if many else [parameters]:
                    ((plan,),) = other.execute(f"EXPLAIN (FORMAT JSON) {statement}", one).fetchall()
                    walk((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])

    engine = catalogue._database._engine
    sa.event.listen(engine, "before_cursor_execute", explain)
    try:
        ask()
    finally:
        sa.event.remove(engine, "before_cursor_execute", explain)
    return nodes


def asked(of: str, **wanted: Any) -> Any:
    offset, limit = {"first": (0, 50), "deep": (PHOTOS // 2, 50)}[of]
    return lambda catalogue: catalogue.page(offset, limit, wanted=PhotoFilter(**wanted))


SOME = list(range(1000, 1100))
HOT: dict[str, Callable[[Catalogue], object]] = {
    "first page": asked("first"),
    "deep page": asked("deep"),
    "last page": lambda catalogue: catalogue.page(PHOTOS - REMOVED - 10, 50),
    "page by a part of the name": asked("first", name="IMG_00012345"),
    "page by a part of many names": asked("first", name="7.jpg"),
    "page by folder": asked("first", folder="17"),
    "page by date": asked("first", taken_from="1999-05", taken_to="1999-05"),
    "page until a date": asked("first", taken_to="1990"),
    "page by place": asked("first", near=Near(7.0, 7.0, 10.0)),
    "page by camera": asked("first", camera="canon 17"),
    "page by title": asked("first", title="canal 5"),
    "page by tag": asked("first", tags=("tag 7",)),
    "page by frequent tag": asked("first", tags=("FREQUENT",)),
    "page without tag": asked("first", without_tags=("tag 7",)),
    "deep page without frequent tag": asked("deep", without_tags=("frequent",)),
    "page by folder, date and tag": asked("first", folder="17", taken_from="1999", tags=("tag 7",)),
    "numbers": lambda catalogue: catalogue.read(numbers_of),
    "numbers by tag": lambda catalogue: catalogue.read(numbers_of, wanted=PhotoFilter(tags=("tag 7",))),
    "numbers without tag": lambda catalogue: catalogue.read(numbers_of, wanted=PhotoFilter(without_tags=("tag 7",))),
    "rows": lambda catalogue: catalogue.read(rows_of, SOME),
    "names": lambda catalogue: catalogue.read(names_in_order, SOME),
    "paths": lambda catalogue: catalogue.read(paths_of, SOME),
    "numbers of names": lambda catalogue: catalogue.read(numbers_of_names, ["a", "b"]),
    "photo of a name": lambda catalogue: catalogue.read(photo_of_name, "17/sub/IMG_00000117.jpg"),
    "photo of a content": lambda catalogue: catalogue.read(photo_of_content, "a" * 64),
    "dates of paths": lambda catalogue: catalogue.read(dates_added, ["/p/a", "/p/b"]),
    "first and last": lambda catalogue: catalogue.read(first_and_last_added),
    "metadata of photos": lambda catalogue: catalogue.read(metadata_of, SOME),
    "imported": lambda catalogue: catalogue.read(imported_values),
    "failures": lambda catalogue: catalogue.read(failures_in),
    "tombstones": lambda catalogue: catalogue.read(tombstones_in),
    "snapshot": lambda catalogue: catalogue.read(segments_and_tombstones),
    "missing": lambda catalogue: catalogue.read(missing_photos),
    "counts": lambda catalogue: catalogue.read(counts_of_photos),
    "folders": lambda catalogue: catalogue.read(folders_of),
    "quantisation": lambda catalogue: catalogue.read(quantisation_errors, PHOTOS // 2),
    "a part of the places": lambda catalogue: next(catalogue.places()),
    "mark missing": lambda catalogue: catalogue.write(mark_missing, SOME[:3]),
    "import": lambda catalogue: catalogue.write(import_values, {2000: {"archive": ["Rome"]}}),
    "remove": lambda catalogue: catalogue.write(make_tombstones, [3000, 3001], for_good=True),
    "commit": lambda catalogue: add(catalogue, "000100"),
}


def add(catalogue: Catalogue, folder: str) -> None:
    first = catalogue.write(reserve_numbers, 2)
    rows = [ImageRow(number=first + i, path=f"/new/{folder}/{i}.jpg", position=i, features=10) for i in range(2)]
    segment = SegmentRow(
        folder=folder, images=2, features=20, bytes=1, vocabulary_fingerprint="v", descriptor_fingerprint="d"
    )
    catalogue.write(commit_segment, segment, rows, [Metadata(taken="2001", tags=("tag 1",))] * 2)


@pytest.mark.parametrize("name", HOT)
def test_what_is_asked_often_reads_no_whole_table(catalogue: Catalogue, name: str) -> None:
    nodes = plans_of(catalogue, lambda: HOT[name](catalogue))
    assert nodes
    for node in nodes:
        assert not (node["Node Type"] == "Seq Scan" and node["Relation Name"] in ("images", "metadata")), node
        assert not (node["Node Type"] in ("Sort", "Incremental Sort") and node["Plan Rows"] > PHOTOS / 3), node


@pytest.mark.parametrize("ask", [tag_counts, key_counts])
def test_what_is_counted_of_all_metadata_reads_no_photo_but_few(
    catalogue: Catalogue, ask: Callable[[Session], object]
) -> None:
    for node in plans_of(catalogue, lambda: catalogue.read(ask)):
        assert not (node["Node Type"] == "Seq Scan" and node["Relation Name"] == "images"), node
        assert not (node["Node Type"] == "Sort" and node["Plan Rows"] > PHOTOS / 3), node


@pytest.mark.parametrize("name", ["first page", "deep page", "last page", "page by folder"])
def test_to_skip_pages_no_row_is_read(catalogue: Catalogue, name: str) -> None:
    catalogue._pages.__init__()  # type: ignore[misc]
    nodes = plans_of(catalogue, lambda: HOT[name](catalogue))
    long = [node for node in nodes if node["Plan Rows"] > 100]
    assert {node["Node Type"] for node in long} <= {"Index Only Scan"}, long


def test_answers_are_what_was_put_in(catalogue: Catalogue) -> None:
    counts = catalogue.read(counts_of_photos)
    numbers = catalogue.read(numbers_of)
    assert counts["failed"] == FAILED and len(numbers) == counts["indexed"] == catalogue.page(0, 1)[0]
    assert sorted(catalogue.read(tombstones_in)) == np.setdiff1d(np.arange(PHOTOS), numbers).tolist()
    # Pages of any size, in any order, are those of all names.
    names = sorted(catalogue.read(names_in_order, numbers.tolist()), key=str.encode)
    for offset in (0, 100, 50, 200, len(names) // 2, len(names) // 2 + 70, len(names) - 30, 31_007, len(names)):
        total, rows = catalogue.page(offset, 70)
        assert (total, [row.name for row in rows]) == (len(names), names[offset : offset + 70])
    tagged = [number for number in numbers.tolist() if number < PHOTOS and number % TAGS == 7]
    assert catalogue.read(numbers_of, wanted=PhotoFilter(tags=("TAG 7",))).tolist() == tagged
    total, rows = catalogue.page(0, 10, wanted=PhotoFilter(without_tags=("tag 7", "frequent")))
    without = [number for number in numbers.tolist() if number >= PHOTOS or (number % TAGS != 7 and number % 2)]
    assert total == len(without) and {row.number for row in rows} <= set(without)
    assert dict(catalogue.read(tag_counts))["tag 7"] == len(tagged)
    taken = sum(number < PHOTOS for number in numbers.tolist())
    assert dict(catalogue.read(key_counts))["camera"] == taken
