"""The home folder: what counts as a collection, what is told of it, and what making and discarding do."""

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.web.shelf.shelf import BIN, TITLES, Shelf
from tests.conftest import Indexed


def test_making_renaming_and_discarding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(tmp_path / "new" / "home")
    assert shelf.cards() == [] and not shelf.home.exists()
    name = shelf.make("Été à Paris ")
    assert (name, shelf.title(name)) == ("ete-a-paris", "Été à Paris")
    for same in ("été à paris", "E\u0301te\u0301 à Paris"):
        with pytest.raises(CairnError, match="already"):
            shelf.make(same)
    assert shelf.make("Ete a Paris") == "ete-a-paris-2"
    with pytest.raises(CairnError, match="descriptor"):
        shelf.make("Wrong", descriptor="no such descriptor")
    assert shelf.names() == ["ete-a-paris", "ete-a-paris-2"]
    with monkeypatch.context() as late:  # another command makes the very folder just before
        late.setattr("retrieval.web.shelf.shelf.folder_name", lambda *_: name)
        with pytest.raises(CairnError, match="exists"):
            shelf.make("Late")
    assert sorted(path.name for path in shelf.home.iterdir()) == [
        *shelf.names(),
        TITLES,
    ]  # nothing is left of what failed

    assert shelf.rename(name, "Paris, été") == "Paris, été" and shelf.names()[0] == name
    assert shelf.rename(name, "PARIS, été") == "PARIS, été"  # its own title is not taken by another
    with pytest.raises(CairnError, match="already"):
        shelf.rename(name, "ETE A PARIS")

    def refuse(*_: object) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as unreadable:
        unreadable.setattr("retrieval.web.shelf.shelf.read_regular", refuse)
        with pytest.raises(CairnError, match="Permission denied"):
            shelf.rename("ete-a-paris-2", "Rome")
        assert shelf.title(name) == name  # the list is shown all the same
    assert shelf.title(name) == "PARIS, été"  # and the other titles are not lost
    with pytest.raises(CairnError, match="cannot be read"):
        Shelf(shelf.home / TITLES).cards()
    moved = shelf.discard(name)
    assert moved.parent == shelf.home / BIN and (moved / "collection.toml").is_file()
    assert shelf.names() == ["ete-a-paris-2"]
    kept = {"ete-a-paris-2": "Ete a Paris", f"bin/{moved.name}": "PARIS, été"}  # so that it can be put back
    assert json.loads((shelf.home / TITLES).read_text()) == {"titles": kept}
    for gone in (name, BIN, "..", ".", "", f"{BIN}/{moved.name}", "ete-a-paris-2/segments", "ETE-A-PARIS-2"):
        with pytest.raises(CairnError, match="no such collection"):
            shelf.find(gone)
        with pytest.raises(CairnError, match="no such collection"):
            shelf.discard(gone)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("retrieval.web.shelf.shelf.save_bytes", full)
        assert shelf.discard("ete-a-paris-2").is_dir()  # it has gone, though its title is still written
    assert shelf.names() == [] and shelf.make("Ete a Paris 2") == "ete-a-paris-2"


def test_what_is_told_of_a_collection(tmp_path: Path, indexed: Indexed) -> None:
    (tmp_path / "linked.cairn").symlink_to(indexed.folder)
    (tmp_path / "photos").mkdir()
    (tmp_path / ".hidden").symlink_to(indexed.folder)
    (tmp_path / os.fsdecode(b"\xff")).symlink_to(indexed.folder)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "collection.toml").touch()
    (broken / "catalogue.sqlite").write_bytes(b"no database" * 100)
    (tmp_path / TITLES).write_text('{"titles": {"broken": "Old \\u202e photos", "linked.cairn": 3}}')
    shelf = Shelf(tmp_path)
    cards = {card.name: card for card in shelf.cards()}
    assert list(cards) in (["linked.cairn", "broken"], ["broken", "linked.cairn"])
    seen = cards["linked.cairn"]
    assert (seen.title, seen.photos) == ("linked", len(list(indexed.photos.iterdir())))
    assert seen.cover is not None and seen.cover.path.startswith(str(indexed.photos))
    assert (seen.cover.width or 0) >= (seen.cover.height or 1)
    other = seen.cover.number + 1
    shelf.choose_cover("linked.cairn", other)
    again = Shelf(tmp_path).card("linked.cairn")
    assert again.cover is not None and (again.cover.number, again.title) == (other, "linked")
    assert shelf.card("linked.cairn") == again
    with pytest.raises(CairnError, match="no such photo"):
        shelf.choose_cover("linked.cairn", 10**6)
    segments = sum(path.stat().st_size for path in (indexed.folder / "segments").rglob("*") if path.is_file())
    assert segments < seen.bytes < segments + 50e6
    assert (cards["broken"].title, cards["broken"].photos, cards["broken"].cover) == ("Old photos", None, None)
    shelf.discard("linked.cairn")  # the link alone
    assert "covers" not in json.loads((tmp_path / TITLES).read_text())
    assert (indexed.folder / "collection.toml").is_file()
    (tmp_path / TITLES).write_bytes(b"\xff[")
    assert Shelf(tmp_path).title("broken") == "broken"
    shelf.rename("broken", "Mended")
    (aside,) = tmp_path.glob(f"{TITLES}.damaged-*")
    assert aside.read_bytes() == b"\xff[" and Shelf(tmp_path).title("broken") == "Mended"


def test_a_collection_is_put_back_with_its_name(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    name = shelf.make("Été <b> à Paris")
    assert shelf.binned() == []
    first = shelf.discard(name)
    (one,) = shelf.binned()
    assert (one.folder, one.title, one.name) == (first.name, "Été <b> à Paris", name)
    assert one.moved is not None and abs((datetime.now(UTC) - one.moved).total_seconds()) < 600
    assert shelf.put_back(first.name) == name and shelf.title(name) == "Été <b> à Paris"
    assert shelf.binned() == [] and shelf.find(name).is_dir()
    # Its name and its title have been given to another one since: both are kept apart.
    second = shelf.discard(name)
    assert shelf.make("Été <b> à Paris") == name
    again = shelf.put_back(second.name)
    assert again != name and shelf.title(again) == "Été <b> à Paris (2)" and len(shelf.names()) == 2


@pytest.mark.parametrize("wrong", ["", ".", "..", "../other", "none", "/etc", "bin"])
def test_only_what_lies_in_the_bin_is_put_back(tmp_path: Path, wrong: str) -> None:
    shelf = Shelf(tmp_path / "home")
    moved = shelf.discard(shelf.make("One"))
    (tmp_path / "home" / "other").mkdir()
    (tmp_path / "home" / "bin" / "notes").mkdir()  # no collection
    with pytest.raises(CairnError, match="no longer in the bin"):
        shelf.put_back(wrong)
    with pytest.raises(CairnError, match="no longer in the bin"):
        shelf.put_back("notes")
    assert [one.folder for one in shelf.binned()] == [moved.name]


def test_what_was_moved_by_hand_into_the_bin_is_put_back_too(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    name = shelf.make("One")
    (tmp_path / "bin").mkdir()
    (tmp_path / name).rename(tmp_path / "bin" / "bin 2026-99-99 000000")
    (one,) = shelf.binned()
    assert (one.name, one.moved) == ("bin", None)
    assert shelf.put_back(one.folder) not in ("bin", "")
