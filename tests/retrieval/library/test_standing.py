"""Standing searches: photos that are added later are asked, and found as by a plain search among them."""

import io
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

import cairn as library
from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation import saved
from retrieval.catalogue.curation.rejections import reject
from retrieval.catalogue.curation.saved import (
    change_search,
    delete_search,
    finds_of,
    mark_seen,
    save_search,
    saved_search,
    saved_searches,
)
from retrieval.library.standing import ask_standing
from tests.conftest import Ran
from tests.retrieval.curation.conftest import catalogue as catalogue


@pytest.fixture
def later(linked: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the collection without some photos, and the folder of those that come later."""
    folder = Path(shutil.copytree(linked, tmp_path / "copy.cairn"))
    with library.open(folder) as collection:
        collection.remove(["astronaut_1.png", "astronaut_2.png", "chelsea_small.jpg"])
    new = tmp_path / "new"
    new.mkdir()
    for name in ("astronaut_1.png", "astronaut_2.png", "chelsea_small.jpg", "coffee_1.png"):
        shutil.copy(linked.parent / "photos" / name, new / f"later_{name}")
    return folder, new


def test_new_photos_are_searched_once_and_found_as_by_a_plain_search(
    later: tuple[Path, Path], cairn: Callable[..., Ran]
) -> None:
    folder, new = later
    with library.open(folder) as collection:
        catalogue = collection.opened.catalogue
        astronaut, coffee = (collection.photo(name).number for name in ("astronaut_0.png", "coffee_0.png"))
        how = {"turns": 1}
        face = {"photo": astronaut, "box": [150, 30, 330, 260]}
        box = catalogue.write(
            save_search, " The\n astronaut ", {"queries": [face], "options": how}, standing=True, tag="Eileen"
        )
        buffer = io.BytesIO()
        Image.open(new / "later_chelsea_small.jpg").convert("RGB").rotate(2).save(buffer, "JPEG")
        upload = {"queries": [{"name": "mine.jpg"}], "options": how}
        mine = catalogue.write(save_search, "My cat", upload, buffer.getvalue(), standing=True, favourite=True)
        gone = catalogue.write(save_search, "Coffee", {"queries": [{"photo": coffee}], "options": how}, standing=True)
        plain = catalogue.write(save_search, "Never asked", {"queries": [face]})
        assert [one.name for one in catalogue.read(saved_searches)] == [
            "My cat",
            "Coffee",
            "Never asked",
            "The astronaut",
        ]
        assert [asking.asked for asking in ask_standing(collection.opened)] == [0, 0, 0]
        last = max(collection.opened.catalogue.read(numbers_of))
        collection.add(new)
        collection.remove(["coffee_0.png"])
        rejected = collection.photo("later_astronaut_2.png").number
        catalogue.write(reject, astronaut, [rejected])

    reported = cairn("searches", "ask", folder, "--json")
    assert reported.code == 1
    by_name = {one["name"]: one for one in reported.json["searches"]}
    assert "removed from the collection" in by_name["Coffee"]["problem"] and by_name["Coffee"]["found"] == []
    assert by_name["My cat"]["found"] == ["later_chelsea_small.jpg"] and by_name["My cat"]["asked"] == 4

    with library.open(folder) as collection:
        catalogue = collection.opened.catalogue
        everything = collection.search("astronaut_0.png", face["box"], top=100, turns=1).found
        expected = [one for one in everything if one.number > last]
        assert by_name["The astronaut"]["found"] == [one.name for one in expected] == ["later_astronaut_1.png"]
        (find,) = catalogue.read(finds_of, box)
        assert find.region == [list(point) for point in expected[0].region] and not find.seen
        assert find.probability == pytest.approx(expected[0].probability, abs=0.05)
        assert collection.photo(find.number).tags == ("Eileen",)
        assert (catalogue.read(saved_search, box).found, catalogue.read(saved_search, box).new) == (1, 1)
        catalogue.write(mark_seen, box, [find.number, 999])
        assert catalogue.read(saved_search, box).new == 0 and catalogue.read(saved_search, mine).new == 1
        catalogue.write(mark_seen, mine)
        assert catalogue.read(saved_search, mine).new == 0 and not catalogue.read(finds_of, plain)
        # Nothing is asked twice, but what could not be asked.
        assert [(one.search.id, one.asked) for one in ask_standing(collection.opened)] == [
            (mine, 0),
            (gone, 4),
            (box, 0),
        ]
        # One that becomes standing is asked of photos that come then.
        catalogue.write(change_search, plain, {"standing": True, "name": "Asked"})
        assert [one.asked for one in ask_standing(collection.opened) if one.search.id == plain] == [0]
        with pytest.raises(CairnError, match="needs a name"):
            catalogue.write(change_search, plain, {"name": " \n"})
        with pytest.raises(CairnError, match="no saved search 99"):
            catalogue.write(change_search, 99, {"name": "x"})
        catalogue.write(delete_search, box)
        assert not catalogue.read(finds_of, box)
    listed = cairn("searches", "list", folder, "--json").json["searches"]
    assert [one["name"] for one in listed] == ["My cat", "Asked", "Coffee"]
    assert "My cat, favourite, standing, 1 found, 0 new" in cairn("searches", "list", folder).out


def test_no_more_searches_are_kept_than_may_be_by_several_at_once(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST", 3)

    def save(name: str) -> bool:
        try:
            catalogue.write(save_search, name, {"queries": []})
        except saved.TooManySearches:
            return False
        return True

    with ThreadPoolExecutor(6) as several:
        assert list(several.map(save, "abcdefgh")).count(True) == 3
    assert len(catalogue.read(saved.saved_searches)) == 3
    catalogue.close()
