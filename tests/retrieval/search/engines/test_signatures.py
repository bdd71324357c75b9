"""The engines of signatures: what a query knows of its features, and what collections without them are told."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from index.hamming.voting import SignedFeatures
from retrieval.catalogue.photos import names_in_order, photo_of_name
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.search.answers import find_photo, make_query
from retrieval.search.options import SearchOptions
from retrieval.search.query import Query
from retrieval.search.searcher import Searcher
from tests.conftest import Indexed, Ran
from tests.support.live import serving
from tests.support.searching import answer_to, read_query

NAMES = ("signatures", "signatures-sp")
SIGNED = SearchOptions(engine="signatures-sp", turns=1)
ASKED = "coffee_001.jpg"


def recalled(searcher: Searcher, name: str, box: tuple[float, float, float, float] | None = None) -> Query:
    return make_query(searcher, find_photo(searcher.collection, name, box))


def first_words(features: SignedFeatures | None) -> list[tuple[int, bytes]]:
    """The nearest word of each feature, and the signature by it, in some order that is the same for equal ones."""
    assert features is not None
    pairs = zip(features.words[:, 0].tolist(), features.signatures[:, 0], strict=True)
    return sorted((word, signature.tobytes()) for word, signature in pairs)


@pytest.mark.parametrize("boxed", [False, True])
def test_indexed_features_have_the_signatures_that_extraction_gives(
    opened: Collection, indexed: Indexed, boxed: bool
) -> None:
    box = indexed.boxes["coffee_001"] if boxed else None
    kept = recalled(Searcher(opened, SIGNED), ASKED, box).views[0]
    fresh = read_query(opened, indexed.photos / ASKED, box, signed=SIGNED.signed).views[0]
    assert kept.signed is not None and fresh.signed is not None
    assert first_words(kept.signed) == first_words(fresh.signed)
    assert kept.signed.words.shape == fresh.signed.words.shape == (len(kept.words), 3)
    np.testing.assert_array_equal(kept.signed.words[:, 0], kept.words)
    # What is told of the other words is true of most bits, where they are the nearest to the descriptor as well.
    whole = recalled(Searcher(opened, SIGNED), ASKED).views[0]
    assert len(kept.words) <= len(whole.words) and (len(kept.words) == len(whole.words)) != boxed
    assert all(len(set(row)) == len(row) for row in kept.signed.words.tolist())


@pytest.mark.parametrize("name", NAMES)
def test_a_photo_that_is_indexed_twice_is_found_twice(indexed: Indexed, tmp_path: Path, name: str) -> None:
    """By its indexed features, and by a file: the first with the same score as its copy."""
    folder = Path(shutil.copytree(indexed.folder, tmp_path / "c.cairn"))
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(indexed.photos / ASKED, again / "again.jpg")
    options = SearchOptions(engine=name, turns=1)
    with Collection.open(folder) as collection:
        index_photos(collection, [again])
        searcher = Searcher(collection, options)
        for query in (recalled(searcher, ASKED), read_query(collection, indexed.photos / ASKED, signed=options.signed)):
            first, second = answer_to(query, searcher).hits[:2]
            assert sorted(collection.catalogue.read(names_in_order, [first.number, second.number])) == [
                "again.jpg",
                ASKED,
            ]
            assert first.score == second.score > 0


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A collection of one word, one of whose photos shows nothing."""
    folder = tmp_path_factory.mktemp("flat")
    photos = folder / "photos"
    photos.mkdir()
    Image.new("RGB", (200, 150), (90, 90, 90)).save(photos / "plain.png")
    rng = np.random.default_rng(0)
    for name in ("one", "other"):
        tiles = rng.integers(0, 256, (12, 16)).astype(np.uint8).repeat(16, 0).repeat(16, 1)
        Image.fromarray(tiles).convert("RGB").save(photos / f"{name}.png")
    with Collection.create(folder / "c.cairn", CollectionOptions(words=1, signature="hamming-64")) as collection:
        assert index_photos(collection, [photos]).failed == []
    yield folder


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("photo", ["plain.png", "one.png"])
def test_a_photo_without_features_and_a_collection_of_one_word(flat: Path, name: str, photo: str) -> None:
    """One word is in all photos that show anything, and beside it is no other."""
    options = SearchOptions(engine=name, turns=1)
    with Collection.open(flat / "c.cairn") as collection:
        searcher = Searcher(collection, options)
        for query in (recalled(searcher, photo), read_query(collection, flat / "photos" / photo, signed=3)):
            assert query.views[0].signed is not None and query.views[0].signed.words.shape[1] == 1
            hits = answer_to(query, searcher).hits
            assert len(hits) == 3 and all(np.isfinite(hit.score) for hit in hits)
            if photo == "plain.png":
                assert not any(hit.score or hit.verification.inliers for hit in hits)
            else:
                assert collection.catalogue.read(names_in_order, [hits[0].number]) == [photo]


# The command line, and the server


@pytest.mark.slow
def test_the_command_line_makes_and_searches_a_collection_with_signatures(
    indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    folder = tmp_path / "c.cairn"
    names = ["cat_001.jpg", "cat_002.jpg", "coins_001.jpg"]
    photos = [indexed.photos / name for name in names]
    asked = ("index", folder, *photos, "--words", 200, "--quiet")
    assert "There is no signature '65'; choose one of none, hamming-32" in cairn(*asked, "--signature", 65).refused()
    assert cairn(*asked, "--signature", 64).code == 0
    assert cairn("info", folder, "--json").json["signature"] == "hamming-64"
    assert "signature    hamming-64\n" in cairn("info", folder).out
    for name in NAMES:
        told = cairn("query", folder, "cat_001.jpg", "--engine", name, "--turns", 1, "--json").json
        assert told["engine"] == name
        assert [one["name"] for one in told["results"][:2]] == names[:2]
        assert (told["results"][1]["inliers"] > 0) == (name == "signatures-sp")
    # A collection without says what to do.
    assert cairn("retrain", folder, "--signature", "none", "--words", 200).code == 0
    assert cairn("info", folder, "--json").json["signature"] is None
    for name in NAMES:
        refused = cairn("query", folder, "cat_001.jpg", "--engine", name, "--json").refused()
        assert "needs signatures of features" in refused and "cairn retrain --signature" in refused
    with serving(folder, tmp_path / "cache") as address, httpx.Client(base_url=address, timeout=60) as client:
        answer = client.get("/api/search", params={"q": 0, "engine": "signatures-sp", "turns": 1})
        assert answer.status_code == 400 and "needs signatures of features" in answer.json()["detail"]


@pytest.mark.slow
def test_the_server_searches_by_signatures(
    indexed: Indexed, opened: Collection, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    row = opened.catalogue.read(photo_of_name, ASKED)
    assert row is not None
    with serving(indexed.folder, tmp_path / "cache") as address, httpx.Client(base_url=address, timeout=60) as client:
        assert '<option value="signatures-sp"' in client.get("/search").text
        for name in NAMES:
            answer = client.get("/api/search", params={"q": row.number, "engine": name, "turns": 1, "top": 5})
            assert answer.status_code == 200, answer.text
            told = cairn("query", indexed.folder, ASKED, "--engine", name, "--turns", 1, "--top", 5, "--json").json
            found = [(one["number"], one["score"], one["inliers"]) for one in answer.json()["results"]]
            assert found == [(one["number"], one["score"], one["inliers"]) for one in told["results"]]
            other = answer.json()["results"][1]["number"]
            match = client.get("/api/match", params={"q": row.number, "photo": other, "engine": name, "turns": 1})
            assert match.status_code == 200 and match.json()["inliers"] > 20, match.text


def test_a_view_without_signatures_is_a_mistake_and_a_collection_without_is_refused(
    opened: Collection, indexed: Indexed
) -> None:
    view = read_query(opened, indexed.photos / ASKED).views[0]
    with pytest.raises(ValueError, match="no signatures"):
        Searcher(opened, SIGNED).search([view])
    bare = replace(opened, options=replace(opened.options, signature="none"))
    with pytest.raises(CairnError, match=r"needs signatures of features.*retrain.signature=….\.$"):
        Searcher(bare, SIGNED)
