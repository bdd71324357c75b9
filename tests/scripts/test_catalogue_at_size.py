"""The catalogue that is measured at size: what is written in bulk is what indexing would have written."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import Database
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import tag_counts
from retrieval.catalogue.photos import counts_of_photos
from retrieval.catalogue.schema import Base
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers
from scripts.catalogue_at_size import ask, check, fill, index, know, segment_of, synthetic_photos, write_in_bulk

PHOTOS = 300


def rows_of(catalogue: Catalogue) -> dict[str, list[dict[str, Any]]]:
    database = Database(catalogue.address)
    with database.transaction() as session:
        found = {
            table.name: [dict(row) for row in session.execute(sa.select(table).order_by(*table.primary_key)).mappings()]
            for table in Base.metadata.sorted_tables
            if table.name != "settings"
        }
    database.close()
    for row in found["segments"]:
        del row["created"]
    return found


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_what_is_written_in_bulk_is_what_indexing_writes(
    request: pytest.FixtureRequest, tmp_path: Path, where: str
) -> None:
    make: Any = request.getfixturevalue("postgresql") if where == "postgresql" else None
    addresses = [make() if make else str(tmp_path / name) for name in ("bulk", "indexed")]
    with Catalogue.open(addresses[0], create=True) as bulk, Catalogue.open(addresses[1], create=True) as indexed:
        for catalogue in (bulk, indexed):
            assert catalogue.write(reserve_numbers, PHOTOS) == 0
        made = list(synthetic_photos(0, PHOTOS, (0, 40), 1))
        database = Database(bulk.address)
        write_in_bulk(database, 1, made)
        database.close()
        rows, metadata = [one.row for one in made], [one.metadata for one in made]
        indexed.write(commit_segment, segment_of(1, PHOTOS), rows, metadata)
        assert rows_of(bulk) == rows_of(indexed)
        assert len(bulk.read(tag_counts)) > 3 and bulk.page(0, 1, PhotoFilter(folder="1995/01/02"))[0] > 3


@pytest.mark.slow
def test_a_small_one_is_measured(tmp_path: Path) -> None:
    address = str(tmp_path / "c")
    reported = fill(address, 6000, 2000, 0) | index(address, 1000, 500, 0)
    assert fill(address, 6000, 2000, 0) == {}  # it is filled already
    for measure in (ask, know, check):
        reported |= measure(address)
    assert {"open", "first page of all", "remove 100 photos", "check: metadata and the rest"} <= set(reported)
    with Catalogue.open(address) as catalogue:
        counts = catalogue.read(counts_of_photos)
        assert counts["indexed"] + counts["removed"] == 7000 and 200 < counts["removed"] <= 300
