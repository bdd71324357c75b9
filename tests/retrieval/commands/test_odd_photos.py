"""Files as people have them, through the commands: what is said of each, and what it can be found by."""

from collections.abc import Callable
from pathlib import Path

import cairn as public
from tests.conftest import Ran
from tests.support.hostile import encode, photo
from tests.support.odd_photos import odd_photos

Cairn = Callable[..., Ran]


def test_every_odd_photo_is_added_or_refused_with_the_reason_and_can_be_searched_with(
    cairn: Cairn, tmp_path: Path
) -> None:
    folder, collection = tmp_path / "photos", tmp_path / "a.cairn"
    folder.mkdir()
    odd = odd_photos()
    for name, one in odd.items():
        (folder / name).write_bytes(one.content)
    reported = cairn("index", collection, folder, "--max-side", 256, "--words", 50, "--json").json
    refused = {Path(one["path"]).name: one["reason"] for one in reported["failed"]}
    assert refused.keys() == {name for name, one in odd.items() if one.refused}
    assert all(odd[name].refused in reason for name, reason in refused.items())
    remarks = {Path(one["path"]).name: one["reason"] for one in reported["remarks"]}
    pages = {f"{name}#{page}" for name, one in odd.items() for page in one.others}
    assert remarks.keys() == {name for name, one in odd.items() if one.remark and not one.others}
    assert all(odd[name].remark in remark for name, remark in remarks.items())
    assert (reported["pages_left"], len(pages)) == (0, 5)
    # The same photo, however it is stored, is found by any of them.
    shown = {name for name, one in odd.items() if one.shows == "photo" and not one.refused}
    with public.open(collection) as opened:
        assert {one.name for one in opened.photos()} == (odd.keys() - refused.keys()) | pages
        found = {one.name for one in opened.search(folder / "planes apart, 16 bits.tif", top=200) if one.found}
    assert shown <= found


def test_what_is_to_be_known_of_a_photo_is_said_once_and_pages_are_counted(cairn: Cairn, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    several = odd_photos()["three pages.tif"].content
    (folder / "three pages.jpg").write_bytes(several)  # by its name, a file of one page
    (folder / "book.tif").write_bytes(several)
    for name in ("baseline, the last hundredth missing.jpg", "16 bits.tif"):
        (folder / name).write_bytes(odd_photos()[name].content)
    said = cairn("index", tmp_path / "a.cairn", folder, "--words", 50).out
    assert "three pages.jpg: 2 more pages of the file left out" in said and "Pages left out: 2" in said
    assert "6 added" in said and "book.tif" not in said
    assert "missing.jpg: the lowest" in said and "16 bits.tif" not in said
    again = cairn("index", tmp_path / "a.cairn", folder).out
    assert "6 unchanged" in again and "left out" not in again


def test_the_limit_of_pixels_is_an_option_of_each_run(cairn: Cairn, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "small.png").write_bytes(encode(photo("coffee", (200, 150)), "PNG"))
    (folder / "large.png").write_bytes(encode(photo("rocket", (400, 300)), "PNG"))
    reported = cairn("index", tmp_path / "a.cairn", folder, "--words", 50, "--max-pixels", 50_000, "--json").json
    assert [one["reason"] for one in reported["failed"]] == [
        "the photo is 400x300 pixels, which is more than the limit of 50000 pixels"
    ]
    ran = cairn("index", tmp_path / "a.cairn", folder, "--max-pixels", 120_000, "--json")
    assert (ran.json["added"], ran.json["failed"]) == (1, []) and "do not count" not in ran.err
    assert "--max-pixels" in cairn("index", tmp_path / "a.cairn", folder, "--max-pixels", 0).refused()
