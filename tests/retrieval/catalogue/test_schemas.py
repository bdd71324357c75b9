"""Several catalogues in one PostgreSQL database, each in a schema of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from index.errors import CairnError
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.database import Database
from retrieval.catalogue.failures import Failure, failures_in, keep_failures
from retrieval.catalogue.photos import counts_of_photos
from retrieval.catalogue.schema import FORMAT, Base, ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.catalogue.sqlite.full_text import WORDS
from retrieval.collection.collection import Collection
from retrieval.collection.identity import WrongCatalogueError
from retrieval.collection.options import CollectionOptions
from tests.retrieval.catalogue.test_migrations import make_format_6


def add(catalogue: Catalogue, folder: str, photos: int) -> None:
    first = catalogue.write(reserve_numbers, photos)
    rows = [ImageRow(number=first + i, path=f"/{folder}/{i}.jpg", position=i, features=1) for i in range(photos)]
    segment = SegmentRow(
        folder=folder, images=photos, features=photos, bytes=1, vocabulary_fingerprint="v", descriptor_fingerprint="d"
    )
    catalogue.write(commit_segment, segment, rows)


def test_two_catalogues_in_one_database_know_nothing_of_each_other(postgresql: Callable[[], str]) -> None:
    address = postgresql()
    with (
        Catalogue.open(f"{address}&schema=rome", create=True) as rome,
        Catalogue.open(f"{address}&schema=oslo_2", create=True) as oslo,
        Catalogue.open(address, create=True) as plain,
    ):
        add(rome, "000001", 3)
        add(oslo, "000001", 5)
        add(plain, "000001", 7)
        rome.write(make_tombstones, [0])
        oslo.write(keep_failures, [Failure("/x.jpg", "It is empty.")])
        rome.write(keep_setting, "key", "value")
        assert [one.read(counts_of_photos)["indexed"] for one in (rome, oslo, plain)] == [2, 5, 7]
        assert [one.read(counts_of_photos)["removed"] for one in (rome, oslo, plain)] == [1, 0, 0]
        assert [len(one.read(failures_in)) for one in (rome, oslo, plain)] == [0, 1, 0]
        assert [one.setting("key") for one in (rome, oslo, plain)] == ["value", None, None]
        assert [one.write(reserve_numbers, 1) for one in (rome, oslo, plain)] == [3, 6, 7]
        assert sa.make_url(str(rome)) == sa.make_url(f"{address}&schema=rome")
    engine = sa.create_engine(address)
    for schema in ("rome", "oslo_2", "public"):
        tables = sa.inspect(engine).get_table_names(schema)
        assert set(tables) == {"alembic_version", WORDS, *Base.metadata.tables}
    engine.dispose()


def test_one_of_an_earlier_format_is_migrated_alone(postgresql: Callable[[], str]) -> None:
    address = postgresql()
    for schema in ("rome", "oslo"):
        with Catalogue.open(f"{address}&schema={schema}", create=True) as catalogue:
            add(catalogue, "000001", 2)
    options = "options=-csearch_path%3Drome"  # as others than Cairn would name a schema
    make_format_6(f"{address}&{options}")
    with Catalogue.open(f"{address}&schema=rome") as catalogue:
        assert catalogue.setting("cairn.format") == str(FORMAT) and catalogue.revision() == 4
        assert catalogue.page(0, 1)[0] == 2
    with Catalogue.open(f"{address}&schema=oslo") as catalogue:
        assert catalogue.revision() == 3


def test_nothing_is_made_where_a_catalogue_is_only_looked_for(postgresql: Callable[[], str]) -> None:
    address = postgresql()
    Catalogue.open(address, create=True).close()
    with pytest.raises(CairnError, match="holds no collection"):
        Catalogue.open(f"{address}&schema=rome")
    engine = sa.create_engine(address)
    assert "rome" not in sa.inspect(engine).get_schema_names()
    engine.dispose()


@pytest.mark.parametrize("name", ["", "Rome", "ro me", "1st", "pg_rome", "a" * 64, 'a"; DROP TABLE images; --', "é"])
def test_what_is_no_name_of_a_schema_is_refused(name: str) -> None:
    address = sa.engine.URL.create("postgresql+psycopg", database="x", query={"schema": name})
    with pytest.raises(CairnError, match=r"is no name for the schema .* such as \?schema=holiday"):
        Database(address)


def test_a_schema_is_not_for_sqlite(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match=r"only PostgreSQL has: leave out \?schema="):
        Catalogue.open(f"sqlite:///{tmp_path}/c.sqlite?schema=rome", create=True)
    assert list(tmp_path.iterdir()) == []


def test_the_refusal_of_another_collections_database_names_the_way_out(
    postgresql: Callable[[], str], tmp_path: Path
) -> None:
    address = postgresql()
    one, two = tmp_path / "one", tmp_path / "2nd photos"
    with Collection.create(one, CollectionOptions(signature="none"), catalogue=address):
        pass
    with pytest.raises(WrongCatalogueError, match="or a schema of its own in that one, as with") as refused:
        Collection.create(two, CollectionOptions(signature="none"), catalogue=address)
    way_out = str(refused.value).rpartition(" as with ")[2].removesuffix(".")
    assert sa.make_url(way_out) == sa.make_url(f"{address}&schema=photos_2nd_photos")
    with Collection.create(two, CollectionOptions(signature="none"), catalogue=way_out):
        pass
    for folder, where in ((one, address), (two, way_out)):
        with Collection.open(folder, catalogue=where):
            pass
    with pytest.raises(WrongCatalogueError, match="belongs to another collection"):
        Collection.open(one, catalogue=way_out)
