"""A folder and its catalogue know each other: a wrong address destroys nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.schema import count_writing
from retrieval.collection.collection import Collection
from retrieval.collection.identity import IDENTITY_KEY, WrongCatalogueError, read_identity
from retrieval.collection.layout import IDENTITY, SEAL
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.integrity.check import check_collection
from retrieval.integrity.repair import repair_collection
from tests.conftest import Indexed, Ran
from tests.support.hostile import photo

Cairn = Callable[..., Ran]


def forget_identity(folder: Path, address: str | None = None) -> None:
    """Make a collection, or its catalogue, one of before there were identities."""
    import sqlalchemy as sa

    engine = sa.create_engine(address or f"sqlite:///{folder / 'catalogue.sqlite'}")
    with engine.begin() as connection:
        connection.execute(sa.text(f"DELETE FROM settings WHERE key = '{IDENTITY_KEY}'"))
        count_writing(connection)
    engine.dispose()


def state(folder: Path) -> dict[str, bytes]:
    """All files but those that SQLite makes again."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in paths
        if not path.name.startswith("catalogue.sqlite")
    }


@pytest.fixture
def copy(indexed: Indexed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed.folder, tmp_path / "demo.cairn"))


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A folder with one photo in it."""
    folder = tmp_path / "one"
    folder.mkdir()
    photo("coffee").save(folder / "coffee.png")
    return folder


def make(folder: Path, photos: Path, address: str) -> None:
    with Collection.create(folder, CollectionOptions(words=40, signature="none"), catalogue=address) as collection:
        assert index_photos(collection, [photos], workers=1).added == 1


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a catalogue that is not in the collection's folder."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql")())
    return f"sqlite:///{tmp_path / 'elsewhere.sqlite'}"


def test_a_copy_of_a_whole_folder_works(copy: Path, cairn: Cairn, one: Path) -> None:
    again = Path(shutil.copytree(copy, copy.with_name("again.cairn")))
    for folder in (copy, again):
        assert read_identity(folder) is not None
        assert cairn("index", folder, one, "--workers", 1, "--json").json["added"] == 1
        assert check_collection(folder).ok


@pytest.mark.slow
def test_a_wrong_address_changes_nothing(copy: Path, one: Path, address: str, cairn: Cairn, tmp_path: Path) -> None:
    """Neither the folder, nor the collection whose address it is, nor a new one."""
    mine = tmp_path / "mine.cairn"
    make(mine, one, address)
    before = state(copy), state(mine)
    with Catalogue.open(address) as catalogue:
        revision = catalogue.revision()
    commands: list[tuple[object, ...]] = [
        ("index", copy, one),
        ("remove", copy, "coffee.png"),
        ("compact", copy),
        ("check", copy),
        ("repair", copy),
        ("info", copy),
    ]
    for command in commands:
        reported = cairn(*command, "--catalogue", address).refused()
        assert "belongs to another collection" in reported and "was made with" in reported, command
    reported = cairn("index", tmp_path / "new.cairn", one, "--catalogue", address).refused()
    assert "a database of its own" in reported
    assert not (tmp_path / "new.cairn").exists()
    assert (state(copy), state(mine)) == before
    with Catalogue.open(address) as catalogue:
        assert catalogue.revision() == revision
    assert check_collection(mine, catalogue=address).ok and check_collection(copy).ok


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [True, False])
def test_nor_where_neither_has_an_identity(copy: Path, one: Path, address: str, tmp_path: Path, sealed: bool) -> None:
    mine = tmp_path / "mine.cairn"
    make(mine, one, address)
    for folder, catalogue in ((copy, None), (mine, address)):
        (folder / IDENTITY).unlink()
        forget_identity(folder, catalogue)
        if not sealed:
            (folder / SEAL).unlink()
    with pytest.raises(WrongCatalogueError, match="another collection"):
        Collection.open(copy, catalogue=address)
    # Its own is known by its segments, and both get one.
    with Collection.open(mine, catalogue=address) as collection:
        assert index_photos(collection, [one], workers=1).added == 0
        assert read_identity(mine) == collection.catalogue.setting(IDENTITY_KEY) is not None
    with Collection.open(copy) as collection:
        index_photos(collection, [one], workers=1)
        assert read_identity(copy) == collection.catalogue.setting(IDENTITY_KEY) is not None


def test_a_killed_process_leaves_the_identity_in_the_folder_alone(one: Path, address: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.cairn"
    with Collection.create(mine, CollectionOptions(words=40, signature="none"), catalogue=address):
        forget_identity(mine, address)
    make(mine, one, address)
    with Catalogue.open(address) as catalogue:
        assert catalogue.setting(IDENTITY_KEY) == read_identity(mine) is not None


@pytest.mark.parametrize("how", ["missing", "flipped", "another"])
def test_a_damaged_identity_is_restored(copy: Path, how: str) -> None:
    kept = read_identity(copy)
    contents = (copy / IDENTITY).read_bytes()
    if how == "missing":
        (copy / IDENTITY).unlink()
    else:
        digit = b"0" if contents[:1] != b"0" else b"1"
        (copy / IDENTITY).write_bytes((b"\xff" if how == "flipped" else digit) + contents[1:])
    assert [one.file for one in check_collection(copy).damaged] == [IDENTITY]
    assert repair_collection(copy).ok
    assert read_identity(copy) == kept is not None
