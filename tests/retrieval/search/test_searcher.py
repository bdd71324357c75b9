"""Searches on photos with known homographies: scores, order, geometry, turned queries, expansion."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from index.similarity import SimilarityMatrix, nearest_pairs
from retrieval.catalogue.photos import all_indexed, names_in_order, rows_of
from retrieval.collection.collection import Collection
from retrieval.matching.verification import NOTHING, Verification, VerificationOptions
from retrieval.photos.decoding import read_photo
from retrieval.search.answers import ask_with_photo, find_photo, make_query
from retrieval.search.engines.registry import ENGINES, EXPANSIONS, VerifiedPhotos, find_engine
from retrieval.search.expansion import ExpansionOptions
from retrieval.search.homography import homography
from retrieval.search.options import SearchOptions
from retrieval.search.probability import CALIBRATIONS
from retrieval.search.query import Query, QuerySource, clip_box, inside_box, quantise_views, recall_query, turns_of
from retrieval.search.ranking import Hit, Ranking, Tried, combine
from retrieval.search.searcher import Searcher
from retrieval.search.views import LazyViews, View, indexed_view
from tests.conftest import OBJECTS, Indexed, Ran
from tests.support.searching import answer_to, ask_for, read_query

QUERIES = tuple(f"{name}_001" for name in OBJECTS)
UPRIGHT = SearchOptions(engine="tf-idf-sp", turns=1)
EXPANDED = [name for name in EXPANSIONS if name != "none"]
Ask = Callable[..., Query]


@pytest.fixture(scope="module")
def collection(indexed: Indexed) -> Any:
    with Collection.open(indexed.folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def ask(indexed: Indexed, collection: Collection) -> Ask:
    """Reads a query once, upright: a view's stem, with the box around the object or without."""
    known: dict[tuple[str, bool, int], Query] = {}

    def read(stem: str, box: bool = True, signed: int = 0) -> Query:
        if (stem, box, signed) not in known:
            path = indexed.photos / f"{stem}.jpg"
            known[stem, box, signed] = read_query(collection, path, indexed.boxes[stem] if box else None, signed=signed)
        return known[stem, box, signed]

    return read


def names(collection: Collection, hits: list[Hit]) -> list[str]:
    return [Path(name).stem for name in collection.catalogue.read(names_in_order, [hit.number for hit in hits])]


def corners(box: tuple[float, float, float, float]) -> np.ndarray:
    x0, y0, x1, y1 = box
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def mapped(matrix: np.ndarray, points: np.ndarray) -> np.ndarray:
    return cv2.perspectiveTransform(points[None].astype(np.float64), matrix)[0]


# Scores and order


@pytest.mark.parametrize("stem", QUERIES[:2])
def test_scores_are_the_cosine_of_tf_idf(collection: Collection, ask: Ask, stem: str) -> None:
    query = ask(stem)
    answer = answer_to(query, Searcher(collection, SearchOptions(engine="tf-idf", turns=1)))
    rows = collection.catalogue.read(all_indexed)
    counts = np.zeros((len(rows), collection.vocabulary.words))
    for place, row in enumerate(rows):
        np.add.at(counts[place], collection.index.images.features(row.number).words.astype(int), 1)
    assert counts.sum() == sum(row.features for row in rows)
    df = (counts > 0).sum(axis=0)
    idf = np.log(len(rows) / np.maximum(df, 1)) * (df > 0)
    asked = np.bincount(query.views[0].words, minlength=len(idf)) * idf
    weighted = counts * idf
    expected = weighted @ asked / (np.linalg.norm(weighted, axis=1) * np.linalg.norm(asked))
    found = {hit.number: hit.score for hit in answer.hits}
    np.testing.assert_allclose([found[row.number] for row in rows], expected, rtol=1e-5)
    assert [hit.number for hit in answer.hits] == [rows[place].number for place in np.argsort(-expected, kind="stable")]


def test_the_square_root_of_counts_discounts_what_repeats(
    collection: Collection, indexed: Indexed, ask: Ask, cairn: Callable[..., Ran]
) -> None:
    """Scores are the cosine of √n idf, n the count of a word, in Python as on the command line."""
    query = ask("coffee_001", box=False)
    words, numbers = collection.vocabulary.words, collection.index.image_numbers.tolist()
    counts = np.stack(
        [np.bincount(collection.index.images.features(number).words, minlength=words) for number in numbers]
    )
    df = (counts > 0).sum(axis=0)
    idf = np.log(len(counts) / np.maximum(df, 1)) * (df > 0)
    rows, asked = np.sqrt(counts) * idf, np.sqrt(np.bincount(query.views[0].words, minlength=words)) * idf
    expected = dict(zip(numbers, rows @ asked / (np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)), strict=True))
    rooted = SearchOptions(engine="tf-idf", turns=1, tf="sqrt")
    hits = answer_to(query, Searcher(collection, rooted)).hits
    np.testing.assert_allclose([hit.score for hit in hits], [expected[hit.number] for hit in hits], rtol=1e-5)
    plain = answer_to(query, Searcher(collection, SearchOptions(engine="tf-idf", turns=1))).hits
    assert {hit.number: hit.score for hit in plain} != {hit.number: hit.score for hit in hits}
    command = ("query", indexed.folder, "coffee_001.jpg", "--engine", "tf-idf", "--turns", 1, "--top", 1000)
    told = cairn(*command, "--tf", "sqrt", "--json").json["results"]
    assert [(entry["number"], entry["score"]) for entry in told] == [
        (hit.number, round(hit.score, 6)) for hit in hits if hit.score > 0
    ]
    assert "choose linear or sqrt" in cairn(*command, "--tf", "log").refused()


def test_expansion_needs_the_region_of_the_query(collection: Collection, ask: Ask) -> None:
    with pytest.raises(ValueError, match="needs the region"):
        Searcher(collection, SearchOptions(engine="tf-idf-sp", expand="average", turns=1)).search(
            ask("coffee_001").views
        )


def test_a_photo_is_asked_with_by_its_indexed_features(collection: Collection, ask: Ask) -> None:
    number = next(row.number for row in collection.catalogue.read(all_indexed) if row.name == "coffee_001.jpg")
    view = indexed_view(collection.index.images.features(number))
    indexed_hits = Searcher(collection, UPRIGHT).search([view]).hits
    hits = answer_to(ask("coffee_001", box=False), Searcher(collection, UPRIGHT)).hits
    assert {hit.number: hit.score for hit in indexed_hits} == {hit.number: hit.score for hit in hits}
    # The order of the others depends on matches that may agree by chance: rounding may add or take one.
    verified = [[hit for hit in some if hit.verification.inliers] for some in (indexed_hits, hits)]
    assert len(verified[0]) >= 3
    for indexed_hit, hit in zip(*verified, strict=True):
        assert indexed_hit.number == hit.number
        # Frames are rounded where they are indexed.
        assert indexed_hit.verification.inliers == pytest.approx(hit.verification.inliers, abs=1, rel=0.05)


@pytest.mark.parametrize(
    ("engine", "expand"),
    [
        *((engine, "none") for engine in ENGINES),
        *((engine, one) for engine in ENGINES for one in EXPANDED if ENGINES[engine].expands),
    ],
)
def test_all_photos_are_ranked_once_the_verified_first(
    collection: Collection, ask: Ask, engine: str, expand: str
) -> None:
    every = sorted(row.number for row in collection.catalogue.read(all_indexed))
    for stem in QUERIES:
        options = SearchOptions(engine=engine, expand=expand, turns=1, verification=VerificationOptions(depth=6))
        hits = answer_to(ask(stem, signed=options.signed), Searcher(collection, options)).hits
        assert sorted(hit.number for hit in hits) == every
        inliers = [hit.verification.inliers for hit in hits]
        if find_engine(engine).verified is VerifiedPhotos.NONE:
            assert not any(inliers)
        assert inliers == sorted(inliers, reverse=True)
        # Among equals, and so among all that are not verified, the score decides, and then the number.
        for one, other in itertools.pairwise(hits):
            if one.verification.strength == other.verification.strength:
                assert (-one.score, one.number) < (-other.score, other.number)
        for hit in hits:
            assert hit.verification.inliers == 0 or hit.verification.inliers >= options.verification.min_inliers
            assert (hit.verification.transform is None) == (hit.verification.inliers == 0)


@pytest.mark.parametrize("engine", ["tf-idf-sp", "raw"])
def test_a_feature_takes_part_in_one_match_at_most(collection: Collection, ask: Ask, engine: str) -> None:
    hits = answer_to(ask("coffee_001"), Searcher(collection, SearchOptions(engine=engine, turns=1))).hits
    assert sum(hit.verification.inliers > 0 for hit in hits) >= 3
    for hit in hits:
        matches = hit.verification.matches
        for side, most in (
            (0, len(ask("coffee_001").views[0].words)),
            (1, len(collection.index.images.features(hit.number).words)),
        ):
            assert len(np.unique(matches[:, side])) == len(matches)
            assert np.isin(matches[:, side], np.arange(most)).all()


@pytest.mark.parametrize("engine", ["tf-idf-sp", "raw"])
def test_what_shows_the_object_comes_first_and_the_query_itself_before_all(
    collection: Collection, ask: Ask, engine: str
) -> None:
    found = verified = wrong = 0
    for stem in QUERIES:
        hits = answer_to(ask(stem), Searcher(collection, SearchOptions(engine=engine, turns=1))).hits
        ranked = names(collection, hits)
        assert ranked[0] == stem
        same = [name.rsplit("_", 1)[0] == stem.rsplit("_", 1)[0] for name in ranked]
        found += sum(same[:3])
        verified += sum(hit.verification.inliers > 0 for hit, own in zip(hits, same, strict=True) if own)
        wrong += sum(hit.verification.inliers > 0 for hit, own in zip(hits, same, strict=True) if not own)
    assert found == verified == 3 * len(QUERIES)
    assert wrong <= 1  # the grounds and the clutter are the same in several photos


def test_homographies_are_those_the_photos_were_made_with(indexed: Indexed, collection: Collection, ask: Ask) -> None:
    errors = []
    for stem in QUERIES:
        query = ask(stem)
        box = corners(indexed.boxes[stem])
        hits = answer_to(query, Searcher(collection, UPRIGHT)).hits[:3]
        rows = collection.catalogue.read(rows_of, [hit.number for hit in hits])
        for hit, row in zip(hits, rows, strict=True):
            matrix = homography(hit, query, row, collection.index.images.features(hit.number))
            assert matrix is not None
            truth = mapped(indexed.homography(stem, Path(row.path).stem), box)
            errors.append(np.linalg.norm(mapped(matrix, box) - truth, axis=1).max())
        assert errors[-3] < 0.1  # the photo itself
    # Pixels, at the corners of the box: the objects are seen at a slant of up to 37 degrees.
    assert len(errors) == 3 * len(QUERIES)
    assert np.median(errors) < 2.5 and max(errors) < 10


def test_what_fixes_no_homography_gives_the_affine_map(collection: Collection, ask: Ask) -> None:
    query = ask("coffee_001")
    hits = answer_to(query, Searcher(collection, UPRIGHT)).hits
    (row,) = collection.catalogue.read(rows_of, [hits[1].number])
    image = collection.index.images.features(hits[1].number)
    affine = np.vstack([hits[1].verification.transform, [0, 0, 1]])
    half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 640]]) / 640
    expected = np.linalg.inv(half) @ affine @ half
    few = replace(hits[1], verification=replace(hits[1].verification, matches=hits[1].verification.matches[:5]))
    # All on one spot, and all of features that an expansion added.
    spot = np.repeat(hits[1].verification.matches[:1], 40, axis=0)
    for matches in (few.verification.matches, spot):
        hit = replace(hits[1], verification=replace(hits[1].verification, matches=matches))
        matrix = homography(hit, query, row, image)
        np.testing.assert_allclose(matrix, expected / expected[2, 2], atol=1e-9)
    assert homography(Hit(1, 0.5, 0), query, row, image) is None


# Boxes


def test_a_box_takes_the_features_in_it(collection: Collection, indexed: Indexed, ask: Ask) -> None:
    whole, part = ask("coffee_001", box=False), ask("coffee_001")
    box = indexed.boxes["coffee_001"]
    every = np.arange(len(whole.views[0].words))
    inside = inside_box(whole.ellipses(0, every)[:, :2], box)
    assert 0 < inside.sum() < len(inside)
    there = whole.ellipses(0, np.flatnonzero(inside))
    np.testing.assert_allclose(part.ellipses(0, every[: inside.sum()]), there, rtol=1e-4, atol=1e-8)
    np.testing.assert_array_equal(part.views[0].words, whole.views[0].words[inside])
    # The words are those that the photo has in the index.
    (row,) = [row for row in collection.catalogue.read(all_indexed) if Path(row.path).stem == "coffee_001"]
    np.testing.assert_array_equal(np.sort(whole.views[0].words), collection.index.images.features(row.number).words)


@pytest.mark.parametrize(
    ("box", "clipped"),
    [
        ((10, 20, 30, 40), (10, 20, 30, 40)),
        ((30, 40, 10, 20), (10, 20, 30, 40)),
        ((30, 20, 10, 40), (10, 20, 30, 40)),
        ((-5, -5.5, 1e9, 7.25), (0, 0, 99, 7.25)),
        ((99, 49, 99, 49), (99, 49, 99, 49)),
    ],
)
def test_corners_are_ordered_and_clipped(box: Any, clipped: Any) -> None:
    assert clip_box(box, 100, 50) == clipped


@pytest.mark.parametrize(
    "box", [(100, 0, 120, 9), (0, 50, 9, 60), (-9, 0, -1, 9), (np.nan, 0, 1, 1), (0, 0, np.inf, 1)]
)
def test_a_box_outside_is_refused(box: Any) -> None:
    with pytest.raises(CairnError):
        clip_box(box, 100, 50)


# Stages


def _watched(query: Query, seen: list[float]) -> LazyViews:
    """Views of a query that tell when they are looked at."""

    class Watched(LazyViews):
        def __getitem__(self, which: Any) -> Any:
            seen.append(which)
            return super().__getitem__(which)

    turns = np.array([0.0, np.pi / 2])
    return Watched(query.views[0], turns, lambda some, full=False: [query.views[0] for _ in some])


def test_turned_views_are_made_only_where_they_can_change_the_answer(collection: Collection, ask: Ask) -> None:
    """A photo that another shows from near is answered upright; so is none that has nothing but its copy."""
    searcher = Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=2))
    seen: list[float] = []
    answer = searcher.search(_watched(ask("coffee_001"), seen))
    assert (answer.turned, answer.sure, set(seen)) == (False, True, {0})
    upright = Searcher(collection, UPRIGHT).search(ask("coffee_001").views[:1])
    assert [(hit.number, hit.score) for hit in answer.hits] == [(hit.number, hit.score) for hit in upright.hits]
    (alone,) = [row for row in collection.catalogue.read(all_indexed) if row.name == "distractor_001.jpg"]
    source = QuerySource(collection.extractor, collection.options.image, Path(alone.path), None)
    query = recall_query(collection, alone, source)
    seen.clear()
    answer = searcher.search(_watched(query, seen))
    assert (answer.turned, answer.sure, set(seen)) == (True, False, {0, 1})


def test_a_query_of_few_features_is_looked_at_turned_whatever_is_found(collection: Collection, ask: Ask) -> None:
    query = ask("coffee_001")
    for few, turned in ((len(query.views[0].words), False), (len(query.views[0].words) + 1, True)):
        answer = Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=2, few_features=few)).search(
            _watched(query, [])
        )
        assert (answer.turned, answer.sure) == (turned, not turned)


def test_every_turn_is_tried_where_that_is_asked_for(collection: Collection, ask: Ask) -> None:
    seen: list[float] = []
    options = SearchOptions(engine="tf-idf-sp", turns=2, every_turn=True)
    answer = Searcher(collection, options).search(_watched(ask("coffee_001"), seen))
    assert (answer.turned, answer.sure, set(seen)) == (True, True, {0, 1})
    # Without geometry nothing says that they are not needed.
    words = Searcher(collection, SearchOptions(engine="tf-idf", turns=2))
    assert words.search(_watched(ask("coffee_001"), seen)).turned


def test_a_camera_that_was_turned_is_a_hint_at_others(collection: Collection, ask: Ask) -> None:
    """Where a sure match is rolled, photos may be there that are rolled by more than upright words bear."""
    strict = SearchOptions(engine="tf-idf-sp", turns=2, sure_roll=1e-6)
    answer = Searcher(collection, strict).search(_watched(ask("coffee_001"), []))
    assert (answer.turned, answer.sure) == (True, False)


def test_so_many_inliers_are_near_whatever_their_part(collection: Collection, ask: Ask) -> None:
    query = ask("coffee_001")
    best = max(hit.verification.inliers for hit in _others(collection, query))
    for most, sure in ((best, True), (best + 1, False)):
        options = SearchOptions(engine="tf-idf-sp", turns=2, sure_share=1.0, sure_inliers=most, sure_roll=np.pi)
        assert Searcher(collection, options).search(_watched(query, [])).sure == sure


def test_what_has_few_inliers_beside_the_best_hints_at_no_turned_camera(collection: Collection, ask: Ask) -> None:
    asked = [ask(one) for one in QUERIES]
    found = [(query, _others(collection, query)) for query in asked]
    query, others = next((query, others) for query, others in found if _roll_of(others[0]) < max(map(_roll_of, others)))
    weaker = max(others, key=_roll_of)
    part = weaker.verification.inliers / others[0].verification.inliers
    limit = max(_roll_of(hit) for hit in others if hit.verification.inliers > weaker.verification.inliers)
    for hint, sure in ((part * 0.99, False), (part * 1.01, True)):
        options = SearchOptions(engine="tf-idf-sp", turns=2, sure_hint=hint, sure_roll=limit * 1.001, sure_share=0.01)
        assert Searcher(collection, options).search(_watched(query, [])).sure == sure


def _others(collection: Collection, query: Query) -> list[Hit]:
    """What a query finds upright beyond doubt, the best first, but for the photo itself."""
    options = replace(UPRIGHT, sure_turn=1)
    hits = Searcher(collection, options).search(query.views[:1]).hits
    copy = options.copy * len(query.views[0].words)
    return [hit for hit in hits if options.sure_turn <= hit.verification.inliers < copy]


def _roll_of(hit: Hit) -> float:
    """Angle by which a found photo is rolled, radians."""
    assert hit.verification.transform is not None
    (a, b), (c, d) = hit.verification.transform[:, :2]
    return abs(float(np.arctan2(c - b, a + d)))


def test_a_photo_of_the_collection_is_not_read_again(
    indexed: Indexed, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a copy of it; its words are those that reading it gives, in a box too. A file that has changed is read."""
    path, box = indexed.photos / "coffee_001.jpg", indexed.boxes["coffee_001"]
    fresh = read_query(collection, path, box)
    read: list[Path] = []
    original = QuerySource.read

    def watched(source: QuerySource) -> Any:
        read.append(source.path)
        return original(source)

    monkeypatch.setattr(QuerySource, "read", watched)
    copy = tmp_path / "copy.jpg"
    copy.write_bytes(path.read_bytes())
    searcher = Searcher(collection, UPRIGHT)
    for asked in (
        find_photo(collection, "coffee_001.jpg", box),
        find_photo(collection, str(path), box),
        find_photo(collection, str(copy), box),
    ):
        query = make_query(searcher, asked)
        assert not read
        assert (query.width, query.height, query.box) == (fresh.width, fresh.height, fresh.box)
        np.testing.assert_array_equal(query.views[0].words, np.sort(fresh.views[0].words))
    (row,) = [row for row in collection.catalogue.read(all_indexed) if row.name == "coffee_001.jpg"]
    assert ask_with_photo(replace(row, mtime_ns=1), "copied", box).row is not None  # by its content
    with Image.open(path) as photo:
        photo.save(copy, quality=60)
    assert find_photo(collection, str(copy), box).row is None
    changed = replace(row, path=str(copy), size=copy.stat().st_size, mtime_ns=1)
    assert ask_with_photo(changed, "changed", box).row is None
    make_query(searcher, find_photo(collection, str(copy), box))
    assert read
    # Descriptors, and several words a feature, are not kept.
    read.clear()
    for options in (SearchOptions(engine="raw", turns=1), SearchOptions(soft=3, turns=1)):
        make_query(Searcher(collection, options), find_photo(collection, "coffee_001.jpg", box))
    assert len(read) >= 2


@pytest.mark.parametrize(("boxed", "turns", "soft"), [(True, 3, 1), (False, 1, 3)])
def test_views_are_the_same_quantised_together_as_one_after_another(
    indexed: Indexed, collection: Collection, boxed: bool, turns: int, soft: int
) -> None:
    path = indexed.photos / "coffee_001.jpg"
    box = indexed.boxes["coffee_001"] if boxed else None
    whole = read_query(collection, path, box, turns, soft=soft)
    source = QuerySource(collection.extractor, collection.options.image, path, box)
    described = [source.describe(turn) for turn in turns_of(collection.extractor, turns).tolist()]
    views = quantise_views(described, collection.vocabulary, soft)
    assert [view.turn for view in views] == pytest.approx(2 * np.pi * np.arange(turns) / turns)
    regions = collection.extractor.detect(read_photo(path, collection.options.image))
    for one, other in zip(views, whole.views, strict=True):
        assert one.turn == other.turn
        for name in ("words", "descriptors", "terms", "weights"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(one.frames.centres, other.frames.centres)
        np.testing.assert_array_equal(one.frames.linear, other.frames.linear)
        np.testing.assert_array_equal(one.words, collection.vocabulary.assign(one.descriptors.astype(np.float32)))
        assert len(one.words) == (len(regions) if not boxed else len(whole.views[0].words)) <= len(regions)


def test_what_a_turned_view_is_made_from_can_be_let_go(collection: Collection, indexed: Indexed) -> None:
    query = read_query(collection, indexed.photos / "coffee_001.jpg", indexed.boxes["coffee_001"], turns=4)
    kept = read_query(collection, indexed.photos / "coffee_001.jpg", indexed.boxes["coffee_001"], turns=4)
    query.rest()
    np.testing.assert_array_equal(query.views[1].words, kept.views[1].words)
    np.testing.assert_array_equal(query.views[1].frames.linear, kept.views[1].frames.linear)


def test_a_view_turned_by_half_is_that_which_its_photo_gives(
    collection: Collection, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the opposite view, reordered; so it is of the upright one, which has more features."""
    monkeypatch.setattr("retrieval.search.query.TURNED_REGIONS", 500)
    photo = indexed.photos / "coffee_001.jpg"
    query = read_query(collection, photo, turns=4)
    assert len(query.views[0].words) > len(query.views[2].words) == 500
    for first, second in ((0, 2), (1, 3)):
        assert query.views[first].turn == pytest.approx(query.views[second].turn - np.pi)
        alone = QuerySource(collection.extractor, collection.options.image, photo, None).describe(
            query.views[second].turn
        )
        made = query.views[second]
        np.testing.assert_allclose(made.descriptors.astype(float), alone.descriptors.astype(float), atol=2e-3)
        np.testing.assert_array_equal(made.frames.linear, alone.frames.linear)
        np.testing.assert_array_equal(made.frames.centres, alone.frames.centres)


def test_an_indexed_photo_is_described_turned_by_its_regions_as_they_are_indexed(
    collection: Collection, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None are looked for, in all of it or in a box; nearly all get the words that the photo itself gives."""
    for box in (None, indexed.boxes["coffee_001"]):
        fresh = read_query(collection, indexed.photos / "coffee_001.jpg", box, turns=4)
        with monkeypatch.context() as patch:
            patch.setattr("retrieval.features.extraction.detect_regions", None)
            asked = find_photo(collection, "coffee_001.jpg", box)
            known = make_query(Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=4)), asked)
            view = known.views[1]
        assert len(view.words) == len(fresh.views[1].words)
        near = np.abs(view.frames.centres[:, None] - fresh.views[1].frames.centres).max(axis=2) < 2e-3
        same = near & (view.words[:, None] == fresh.views[1].words)
        assert same.any(axis=1).mean() > 0.7


def test_an_indexed_photo_gets_the_words_of_an_upload_where_its_file_is_read(
    collection: Collection, indexed: Indexed
) -> None:
    """What is indexed are the nearest word of a feature and its signature; the file tells the other words."""
    searcher = Searcher(collection, SearchOptions(engine="signatures-sp", turns=4))
    for box in (None, indexed.boxes["coffee_001"]):
        fresh = read_query(collection, indexed.photos / "coffee_001.jpg", box, turns=4, signed=3).views[0]
        views = make_query(searcher, find_photo(collection, "coffee_001.jpg", box)).views
        recalled = views[0]
        assert isinstance(views, LazyViews)
        views.complete(0)
        whole = views[0]
        assert recalled.signed is not None and whole.signed is not None and fresh.signed is not None
        assert whole.frames is recalled.frames and whole.words is recalled.words
        frames = [np.column_stack([one.frames.centres, one.frames.linear.reshape(-1, 4)]) for one in (recalled, fresh)]
        words = fresh.signed.words[np.abs(frames[0][:, None] - frames[1]).sum(axis=2).argmin(axis=1)]
        shares = [
            np.mean([len(set(one) & set(other)) / 3 for one, other in zip(some.words, words, strict=True)])
            for some in (recalled.signed, whole.signed)
        ]
        assert shares[1] > 0.85 > 0.6 > shares[0]


def test_the_same_query_is_tried_at_more_turns(collection: Collection, indexed: Indexed) -> None:
    """What was described at turns that both have is not described again."""
    query = read_query(collection, indexed.photos / "coffee_001.jpg", turns=2)
    turned = query.views[1]
    more = query.tried_at(4)
    assert [view.turn for view in more.views] == pytest.approx([0, np.pi / 2, np.pi, 3 * np.pi / 2])
    assert more.views[0] is query.views[0] and more.views[2] is turned
    assert len(query.tried_at(1).views) == 1


def test_what_upright_found_stays_where_turned_views_crowd_it_out(collection: Collection, ask: Ask) -> None:
    """A photo that no view at another turn leaves room for among those that are verified."""
    few = SearchOptions(engine="tf-idf-sp", turns=2, every_turn=True, verification=VerificationOptions(depth=3))
    query = ask("coffee_001")
    upright = Searcher(collection, replace(few, turns=1)).search(query.views[:1])
    others = indexed_view(collection.index.images.features(int(upright.hits[-1].number)))
    crowd = LazyViews(
        query.views[0], np.array([0.0, 1.0]), lambda turns, full=False: [replace(others, turn=turn) for turn in turns]
    )
    both = Searcher(collection, replace(few, turned_candidate=10.0)).search(crowd)
    assert {hit.number for hit in upright.hits if hit.verification.inliers} <= {
        hit.number for hit in both.hits if hit.verification.inliers
    }


# Turned queries


@pytest.mark.parametrize("engine", ["tf-idf-sp", "signatures-sp"])
def test_the_turn_that_a_photo_is_found_at_is_searched_as_fully_as_upright(
    indexed: Indexed, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """A photo that was turned by a quarter finds what it finds upright, by as many features."""
    monkeypatch.setattr("retrieval.search.query.TURNED_REGIONS", 300)
    options = SearchOptions(engine=engine, turns=4)
    searcher = Searcher(collection, options)
    with Image.open(indexed.photos / "coffee_001.jpg") as photo:
        photo.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png")
        photo.save(tmp_path / "upright.png")
    turned, upright = (
        read_query(collection, tmp_path / f"{name}.png", turns=4, signed=options.signed)
        for name in ("turned", "upright")
    )
    assert [len(turned.views[place].words) for place in (1, 2, 3)] == [300] * 3
    expected, answer = (searcher.search(query.views).hits for query in (upright, turned))
    assert not expected[0].view and names(collection, answer[:3]) == names(collection, expected[:3])
    own = turned.views[answer[0].view]
    assert own.turn and (own.signed is None or own.signed.words.shape[1] == options.voting.nearest)
    assert abs(len(own.words) / len(upright.views[0].words) - 1) < 0.05
    for hit, same in zip(answer[:3], expected[:3], strict=True):
        assert hit.view == answer[0].view
        assert hit.verification.inliers == pytest.approx(same.verification.inliers, rel=0.1)
    again = turned.tried_at(4).views  # another search begins with few features
    assert len(again[answer[0].view].words) == 300
    np.testing.assert_array_equal(own.frames.centres[:300], again[answer[0].view].frames.centres)


@pytest.mark.slow
@pytest.mark.parametrize("angle", [90, 45, -135, 180])
def test_a_turned_query_is_found_with_its_geometry(
    indexed: Indexed, collection: Collection, tmp_path: Path, angle: int
) -> None:
    with Image.open(indexed.photos / "coffee_001.jpg") as photo:
        turned = photo.rotate(angle, expand=True, resample=Image.Resampling.BICUBIC)
        width, height = photo.size
    turned.save(tmp_path / "turned.png")
    query = read_query(collection, tmp_path / "turned.png", turns=8)
    hits = answer_to(query, Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=8))).hits
    (row,) = collection.catalogue.read(rows_of, [hits[0].number])
    verified = [hit for hit in hits if hit.verification.inliers > 100]
    assert names(collection, verified)[:2] == ["coffee_001", "coffee_003"]
    assert {name.partition("_")[0] for name in names(collection, verified)} == {"coffee"}
    # From the turned photo back to the one it was made of; Pillow turns about the middle.
    cosine, sine = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    points = corners((200, 150, 400, 300)).astype(float)
    centred = points - [(width - 1) / 2, (height - 1) / 2]
    there = centred @ np.array([[cosine, -sine], [sine, cosine]]) + [(turned.width - 1) / 2, (turned.height - 1) / 2]
    matrix = homography(hits[0], query, row, collection.index.images.features(hits[0].number))
    assert matrix is not None
    np.testing.assert_allclose(mapped(matrix, there), points, atol=4)

    upright = answer_to(read_query(collection, tmp_path / "turned.png"), Searcher(collection, UPRIGHT)).hits
    assert upright[0].verification.inliers < hits[0].verification.inliers


# Expansion


@pytest.mark.parametrize("expand", EXPANDED)
def test_expansion_finds_no_less(collection: Collection, ask: Ask, expand: str) -> None:
    for stem in QUERIES:
        plain = answer_to(ask(stem), Searcher(collection, UPRIGHT)).hits
        expanded = answer_to(
            ask(stem), Searcher(collection, SearchOptions(engine="tf-idf-sp", expand=expand, turns=1))
        ).hits
        for hits in (plain, expanded):
            first = names(collection, hits)[:3]
            assert {name.rsplit("_", 1)[0] for name in first} == {stem.rsplit("_", 1)[0]}
        # What the query's own features verified stays as it is, and the words of the other views change the scores.
        assert [(hit.number, hit.verification.inliers) for hit in plain[:3]] == [
            (hit.number, hit.verification.inliers) for hit in expanded[:3]
        ]
        assert {(hit.number, hit.score) for hit in expanded} != {(hit.number, hit.score) for hit in plain}


@pytest.mark.parametrize("engine", ["tf-idf", "tf-idf-sp"])
@pytest.mark.parametrize("expand", EXPANDED)
def test_expansion_of_nothing_changes_nothing(collection: Collection, ask: Ask, engine: str, expand: str) -> None:
    """Without a photo that is verified well enough there is nothing to expand by."""
    never = SearchOptions(engine, expand, turns=1, expansion=ExpansionOptions(min_inliers=10**6))
    for stem in QUERIES:
        plain = answer_to(ask(stem), Searcher(collection, SearchOptions(engine, turns=1))).hits
        same = answer_to(ask(stem), Searcher(collection, never)).hits
        assert [(hit.number, hit.score, hit.verification.strength) for hit in same] == [
            (hit.number, hit.score, hit.verification.strength) for hit in plain
        ]


@pytest.mark.parametrize("expand", EXPANDED)
def test_what_only_a_verified_photo_shows_comes_behind_what_the_query_finds(
    collection: Collection, ask: Ask, monkeypatch: pytest.MonkeyPatch, expand: str
) -> None:
    query, numbers = (
        ask("coffee_001"),
        {Path(row.path).stem: row.number for row in collection.catalogue.read(all_indexed)},
    )
    searcher = Searcher(collection, SearchOptions(engine="tf-idf-sp", expand=expand, turns=1))
    found = answer_to(query, searcher).hits
    assert names(collection, found[:3]) == ["coffee_001", "coffee_003", "coffee_002"]
    verify_many, own = searcher.engine.verify_many, len(query.views[0].words)

    def blind(view: View, wanted: list[int]) -> list[Verification]:
        """The query does not see one photo; with the features of others added to its own, it does."""
        unseen = numbers["coffee_003"] if len(view.words) == own else None
        return [NOTHING if one == unseen else seen for one, seen in zip(wanted, verify_many(view, wanted), strict=True)]

    monkeypatch.setattr(searcher.engine, "verify_many", blind)
    through = answer_to(query, searcher).hits
    assert names(collection, through[:3]) == ["coffee_001", "coffee_002", "coffee_003"]
    assert through[1].verification.inliers > 20
    # Of its own the query has no map to it, and so no inliers to show.
    assert through[2].verification.strength > (0, 100) > through[3].verification.strength
    assert through[2].verification.transform is None


@pytest.mark.parametrize("expand", EXPANDED)
def test_what_expansion_brings_forward_is_verified_by_the_query(collection: Collection, ask: Ask, expand: str) -> None:
    """Where the photo is that the query would not have looked at."""
    for depth, verified in ((2, ["coffee_001", "coffee_003"]), (200, ["coffee_001", "coffee_003", "coffee_002"])):
        options = SearchOptions(engine="tf-idf-sp", turns=1, verification=VerificationOptions(depth=depth))
        plain = answer_to(ask("coffee_001"), Searcher(collection, options)).hits
        assert names(collection, [hit for hit in plain[:9] if hit.verification.inliers]) == verified
    few = replace(options, expand=expand, verification=VerificationOptions(depth=2))
    expanded = answer_to(ask("coffee_001"), Searcher(collection, few)).hits
    assert [hit.verification.inliers for hit in expanded[:3]] == [hit.verification.inliers for hit in plain[:3]]


# How many photos are verified


@pytest.mark.parametrize(
    ("passing", "batch", "patience", "looked_at"),
    [
        ([], 4, 3, 4),
        ([0], 4, 3, 4),
        ([0, 1], 4, 3, 5),
        ([0, 3], 8, 3, 8),
        ([0, 3, 6], 4, 3, 10),
        ([0, 5], 4, 3, 4),
        ([0, 2, 7], 8, 3, 11),
        (range(100), 4, 3, 12),
    ],
)
def test_photos_are_verified_until_none_of_the_last_ones_passes(
    monkeypatch: pytest.MonkeyPatch,
    collection: Collection,
    ask: Ask,
    passing: Sequence[int],
    batch: int,
    patience: int,
    looked_at: int,
) -> None:
    """By signatures, which rank well: one photo more than the first ones is not looked at without need."""
    verification = VerificationOptions(depth=12, batch=batch, patience=patience)
    options = SearchOptions(engine="signatures-sp", turns=1, verification=verification)
    searcher = Searcher(collection, options)
    asked: list[int] = []

    def verify_many(view: View, numbers: Sequence[int]) -> list[Verification]:
        places = range(len(asked), len(asked) + len(numbers))
        asked.extend(numbers)
        some = Verification(np.zeros((5, 2), np.int32), np.eye(2, 3))
        return [some if place in passing else NOTHING for place in places]

    monkeypatch.setattr(searcher.engine, "verify_many", verify_many)
    answer_to(ask("coffee_001", signed=options.signed), searcher)
    assert len(asked) == len(set(asked)) == looked_at


# Some photos alone


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["tf-idf", "tf-idf-sp", "raw"])
def test_a_search_among_some_photos_ranks_these_as_among_all(
    collection: Collection, indexed: Indexed, engine: str
) -> None:
    query = read_query(collection, indexed.photos / "coffee_001.jpg", indexed.boxes["coffee_001"], turns=2)
    searcher = Searcher(collection, SearchOptions(engine, turns=2))
    everything = [
        (hit.number, hit.score, hit.view, hit.verification.inliers) for hit in answer_to(query, searcher).hits
    ]
    numbers = collection.index.image_numbers
    for some in (numbers[::2], numbers[3:4], numbers[:0], numbers, np.array([5, 2, 5, 10**6, -1])):
        found = [
            (hit.number, hit.score, hit.view, hit.verification.inliers) for hit in answer_to(query, searcher, some).hits
        ]
        assert found == [hit for hit in everything if hit[0] in some]


def test_verification_and_expansion_are_spent_on_the_photos_asked_for(collection: Collection, ask: Ask) -> None:
    """However many others rank before them."""
    one = VerificationOptions(depth=1)
    searcher = Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=1, verification=one))
    everything = answer_to(ask("coffee_001"), searcher).hits
    assert [hit.verification.inliers > 0 for hit in everything[:2]] == [True, False]
    (number,) = [row.number for row in collection.catalogue.read(all_indexed) if row.name == "coffee_003.jpg"]
    (alone,) = answer_to(ask("coffee_001"), searcher, np.array([number])).hits
    assert alone.verification.inliers > 20
    # What expands the query is what may be found: among photos of other things, nothing does.
    others = np.array([row.number for row in collection.catalogue.read(all_indexed) if "coffee" not in str(row.name)])
    expanded, plain = (
        answer_to(ask("coffee_001"), Searcher(collection, SearchOptions("tf-idf", expand, turns=1)), others).hits
        for expand in ("average", "none")
    )
    assert list(expanded) == list(plain)


# Answers


def test_an_answer_stops_where_nothing_matches(indexed: Indexed) -> None:
    answer = ask_for(indexed.folder, "page_001.jpg", top=3, options=UPRIGHT)
    assert [one.rank for one in answer] == [1, 2, 3]
    all_of_them = ask_for(indexed.folder, "page_001.jpg", top=1000, options=UPRIGHT)
    assert all(one.score > 0 or one.inliers for one in all_of_them)


def _ranking(*photos: tuple[int, int, float]) -> Ranking:
    """A ranking of photos, each given by number, inliers and score."""
    ordered = sorted(photos)
    found = {number: Tried(0, _verified(inliers)) for number, inliers, _ in photos if inliers}
    numbers, scores = (
        np.array([one[0] for one in ordered], np.uint32),
        np.array([one[2] for one in ordered], np.float32),
    )
    views, calibration = np.zeros(len(photos), int), CALIBRATIONS["tf-idf-sp"]
    return Ranking(numbers, scores, views, found, lambda wanted: dict.fromkeys(wanted, ""), 0.1, calibration)


def _verified(inliers: int) -> Verification:
    return Verification(np.zeros((inliers, 2), np.int32), np.eye(2, 3), 10.0)


def test_answers_of_several_photos_are_combined() -> None:
    first = _ranking((1, 30, 0.5), (2, 0, 0.4), (3, 0, 0.1), (4, 0, 0.0))
    second = _ranking((3, 20, 0.6), (1, 10, 0.2), (2, 0, 0.3), (4, 0, 0.0))
    of_any = combine([first, second], match_all=False, top=10)
    assert [(which, hit.number, hit.verification.inliers) for which, hit in of_any] == [
        (0, 1, 30),
        (1, 3, 20),
        (0, 2, 0),
        (0, 4, 0),
    ]
    assert combine([first, second], match_all=False, top=2) == of_any[:2]
    of_all = combine([first, second], match_all=True, top=10)
    assert [(which, hit.number, hit.verification.inliers) for which, hit in of_all] == [
        (1, 1, 10),
        (1, 2, 0),
        (0, 3, 0),
        (0, 4, 0),
    ]
    # One answer keeps its own order, whatever its engine ranks by.
    assert [hit for _, hit in combine([second], match_all=True, top=10)] == list(second)


@pytest.mark.parametrize(
    "options", [{"engine": "magic"}, {"expand": "magic"}, {"turns": 0}, {"engine": "raw", "expand": "average"}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(CairnError):
        SearchOptions(**options)


# Soft assignment


def test_soft_assignment_shares_each_feature_between_its_nearest_words(
    indexed: Indexed, collection: Collection
) -> None:
    path = indexed.photos / "coffee_001.jpg"
    hard, soft = (read_query(collection, path, soft=count).views[0] for count in (1, 3))
    assert hard.weights is None and hard.terms is hard.words
    assert soft.weights is not None
    terms, weights = soft.terms.reshape(-1, 3), soft.weights.reshape(-1, 3)
    np.testing.assert_array_equal(terms[:, 0], hard.words)  # matching goes by the nearest word still
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    assert (np.diff(weights, axis=1) <= 1e-6).all()
    searcher = Searcher(collection, SearchOptions(engine="tf-idf", turns=1, soft=3))
    hits = answer_to(read_query(collection, path, soft=3), searcher).hits
    scores = collection.index.score(soft.terms, soft.weights)
    expected = dict(zip(scores.image_numbers.tolist(), scores.scores.tolist(), strict=True))
    assert {hit.number: hit.score for hit in hits} == expected


# Learnt similarity


def related(collection: Collection) -> SimilarityMatrix:
    """Any similarity but that of tf-idf, of the collection's vocabulary."""
    first, second = nearest_pairs(collection.vocabulary, 2)
    rng = np.random.default_rng(0)
    diagonal = rng.uniform(0.2, 1, collection.vocabulary.words).astype(np.float32)
    values = rng.uniform(0, 0.6, len(first)).astype(np.float32)
    return SimilarityMatrix(collection.vocabulary.fingerprint, diagonal, first, second, values)


@pytest.mark.parametrize(
    ("engine", "expand"),
    [
        *((engine, "none") for engine in ENGINES),
        *((engine, one) for engine in ("tf-idf", "tf-idf-sp") for one in EXPANDED),
    ],
)
def test_the_identity_gives_the_answers_of_tf_idf_to_the_last_bit(
    collection: Collection, ask: Ask, tmp_path: Path, engine: str, expand: str
) -> None:
    words = collection.vocabulary.words
    SimilarityMatrix.identity(collection.vocabulary.fingerprint, words).save(tmp_path / "s.npz")
    options = SearchOptions(engine=engine, expand=expand, turns=1, verification=VerificationOptions(depth=6))
    plain = Searcher(collection, options)
    same = Searcher(collection, replace(options, similarity=tmp_path / "s.npz"))
    assert plain.describe_similarity() is None and same.describe_similarity() is not None
    for stem in QUERIES[:2]:
        query = ask(stem, signed=options.signed)
        for one, other in zip(answer_to(query, plain).hits, answer_to(query, same).hits, strict=True):
            assert (one.number, one.score, one.view) == (other.number, other.score, other.view)
            assert one.verification.inliers == other.verification.inliers
            np.testing.assert_array_equal(one.verification.matches, other.verification.matches)


@pytest.mark.parametrize("expand", EXPANSIONS)
def test_a_similarity_scores_and_geometry_verifies_equal_words_still(
    collection: Collection, ask: Ask, tmp_path: Path, expand: str
) -> None:
    related(collection).save(tmp_path / "s.npz")
    options = SearchOptions(engine="tf-idf-sp", expand=expand, turns=1, similarity=tmp_path / "s.npz")
    searcher, query = Searcher(collection, options), ask("coffee_001")
    hits = answer_to(query, searcher).hits
    scores = collection.scored_index(similarity=tmp_path / "s.npz").score(query.views[0].terms)
    expected = dict(zip(scores.image_numbers.tolist(), scores.scores.tolist(), strict=True))
    assert ({hit.number: hit.score for hit in hits} == expected) == (expand == "none")
    plain = collection.index.score(query.views[0].terms)
    assert not np.allclose(scores.scores, plain.scores, atol=1e-3)
    # A pair is two features of one word.
    verified = [hit for hit in hits if hit.verification.inliers]
    assert {name.split("_")[0] for name in names(collection, verified)[:3]} == {"coffee"}
    for hit in verified:
        pairs = hit.verification.matches
        ours = query.views[hit.view].words[pairs[:, 0]]
        np.testing.assert_array_equal(ours, searcher.index.images.features(hit.number).words[pairs[:, 1]])


def test_a_similarity_for_another_vocabulary_is_refused(collection: Collection, tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    replace(related(collection), vocabulary="0" * 64).save(path)
    with pytest.raises(CairnError, match="learnt for another vocabulary"):
        Searcher(collection, SearchOptions(similarity=path))
    path.unlink()
    with pytest.raises(CairnError, match="There is no similarity file"):
        Searcher(collection, SearchOptions(similarity=path))
