"""Names of files that are no UTF-8, as on old CDs: they are indexed under a readable name."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cairn as public
from index.errors import CairnError
from index.text import check_path, path_of_stored, readable, stored_path
from tests.conftest import Ran
from tests.support.hostile import encode, photo

Cairn = Callable[..., Ran]


@given(st.binary(max_size=30).filter(lambda name: b"\0" not in name))
def test_every_path_of_a_file_is_stored_as_text_and_comes_back(name: bytes) -> None:
    path = os.fsdecode(name)
    try:
        check_path(path)
    except CairnError:
        assert any(character > "\U0010ff7f" for character in path)
        return
    stored_path(path).encode()
    assert path_of_stored(stored_path(path)) == path and stored_path(stored_path(path)) == stored_path(path)
    readable(path).encode()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes")
def test_a_photo_of_a_name_in_latin_1_is_indexed_found_moved_and_removed(cairn: Cairn, tmp_path: Path) -> None:
    folder, collection = tmp_path / "photos", tmp_path / "a.cairn"
    place = folder / os.fsdecode(b"Stra\xdfe")
    place.mkdir(parents=True)
    old = place / os.fsdecode(b"caf\xe9.png")
    old.write_bytes(encode(photo("coffee"), "PNG"))
    (place / "é.png").write_bytes(encode(photo("rocket"), "PNG"))
    reported = cairn("index", collection, folder, "--words", 20, "--json").json
    assert (reported["added"], reported["failed"]) == (2, [])
    assert cairn("index", collection, folder, "--json").json["unchanged"] == 2
    with public.open(collection) as opened:
        assert [one.name for one in opened.photos()] == ["Straße/café.png", "Straße/é.png"]
        assert opened.search("Straße/café.png")[0].name == "Straße/café.png"
        assert opened.photo("Straße/café.png").path == str(old)
        assert opened.photos()[0].thumbnail(128)
    assert cairn("check", collection).code == 0
    assert cairn("query", collection, "Straße/café.png", "--json").json["results"][0]["name"] == "Straße/café.png"
    old.rename(old.with_name(os.fsdecode(b"th\xe9.png")))
    assert cairn("index", collection, folder, "--json").json["moved"] == ["Straße/thé.png"]
    (collection / "catalogue.sqlite").unlink()
    assert cairn("repair", collection).code == 0
    assert cairn("index", collection, folder, "--json").json["unchanged"] == 2
    reported = cairn("remove", collection, "Straße/thé.png", "--for-good", "--json").json
    assert reported["removed"] == ["Straße/thé.png"]
    again = cairn("index", collection, folder, "--json").json
    assert (again["added"], len(again["kept_out"])) == (0, 1)
    assert "Straße/thé.png" in cairn("info", collection).out
