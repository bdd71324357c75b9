"""What holds for every engine."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from index.errors import CairnError
from index.similarity import SimilarityMatrix
from retrieval.catalogue.photos import photo_of_name
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.library.collection import Collection as LibraryCollection
from retrieval.library.testing import check_engine
from retrieval.regions.geometry import Frames
from retrieval.search.engines.contract import Engine, load_engine, settle
from retrieval.search.engines.registry import BEST, DEFAULT, ENGINES, PREFERRED, VerifiedPhotos, find_engine
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.search.views import View
from retrieval.web.pool.workers import WorkerPool, WorkerPoolOptions
from retrieval.web.search_models import MatchRequest, QueryPhoto, SearchRequest
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT
from tests.support.searching import read_query
from tests.support.toy_engine import ENTRIES, make_jobs

NAMES = tuple(ENGINES)
ASKED = "coffee_001"


@pytest.fixture(scope="module")
def collection(indexed: Indexed) -> Any:
    with Collection.open(indexed.folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def views(collection: Collection, indexed: Indexed) -> list[View]:
    """A photo of the collection, upright and turned by a quarter."""
    return list(read_query(collection, indexed.photos / f"{ASKED}.jpg", turns=4, signed=3).views[:2])


@pytest.fixture(scope="module", params=["plain", "sqrt", "similarity"])
def options(request: pytest.FixtureRequest, collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Ways of scoring that every engine takes, as keywords of `SearchOptions`."""
    if request.param == "similarity":
        vocabulary, path = collection.vocabulary, tmp_path_factory.mktemp("learnt") / "similarity.npz"
        SimilarityMatrix.identity(vocabulary.fingerprint, vocabulary.words).save(path)
        return {"similarity": path}
    return {"tf": "sqrt"} if request.param == "sqrt" else {}


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest, collection: Collection, options: dict[str, Any]) -> Engine:
    return load_engine(request.param)(collection, SearchOptions(engine=request.param, **options))


def nothing(like: View) -> View:
    """A view without features."""
    none = np.zeros(0, np.int32)
    frames = Frames(np.zeros((0, 2), np.float32), np.zeros((0, 2, 2), np.float32))
    return View(0.0, frames, like.descriptors[:0], words=none, terms=none, weights=None, signed=like.signed.at(none))


def number_of(collection: Collection, stem: str) -> int:
    row = collection.catalogue.read(photo_of_name, f"{stem}.jpg")
    assert row is not None
    return row.number


# The registry


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_leads_to_an_engine_and_to_one_that_explains_its_matches(name: str) -> None:
    entry = find_engine(name)
    assert entry.name == name and entry.label
    assert issubclass(load_engine(name), Engine)
    assert find_engine(entry.explained_by or name).verified is not VerifiedPhotos.NONE
    assert [one.label for one in ENGINES.values()].count(entry.label) == 1


def test_the_default_is_an_engine_and_what_is_none_is_refused_by_name() -> None:
    assert (
        SearchOptions().engine == DEFAULT == BEST and not {BEST} & ENGINES.keys() and set(PREFERRED) <= ENGINES.keys()
    )
    for look_up in (find_engine, load_engine, lambda name: SearchOptions(engine=name)):
        with pytest.raises(CairnError, match=f"no engine 'magic'; choose one of {', '.join([BEST, *ENGINES])}\\."):
            look_up("magic")


# What an engine needs


@pytest.mark.parametrize("name", NAMES)
def test_a_collection_without_what_an_engine_needs_is_refused_and_a_prepared_one_is_not(
    collection: Collection, name: str
) -> None:
    kind = load_engine(name)
    plain = CollectionOptions(signature="none")
    prepared = kind.prepared(plain)
    assert kind.prepared(prepared) == prepared
    assert kind.refusal(replace(collection, options=prepared)) is None
    assert (kind.refusal(replace(collection, options=plain)) is None) == (prepared == plain)
    assert bool(find_engine(name).needs) == (prepared != plain)
    if prepared != plain:
        with pytest.raises(
            CairnError,
            match=rf"engine {name.removesuffix('-sp')} needs .*: index with (signature|keep_descriptors).*\.$",
        ):
            Searcher(replace(collection, options=plain), SearchOptions(engine=name))


@pytest.mark.parametrize("signature", ["none", "hamming-64"])
def test_the_best_engine_is_by_signatures_where_there_are_some_and_by_words_where_only_they_can(
    collection: Collection, signature: str
) -> None:
    made = replace(collection, options=replace(collection.options, signature=signature))
    chosen = "signatures-sp" if signature != "none" else "tf-idf-sp"
    assert settle(SearchOptions(), made).engine == chosen
    assert settle(SearchOptions(expand="average"), made).engine == chosen
    assert settle(SearchOptions(engine="raw"), made).engine == "raw"
    for options in (
        SearchOptions(soft=3),
        SearchOptions(tf="sqrt"),
        SearchOptions(similarity=Path("s")),
    ):
        assert settle(options, made).engine == "tf-idf-sp"


# Scores


def test_the_contract_of_extensions_is_kept(engine: Engine, collection: Collection, options: dict[str, Any]) -> None:
    check_engine(engine.options.engine, LibraryCollection(collection), f"{ASKED}.jpg", **options)


def test_a_photo_is_most_like_itself(engine: Engine, collection: Collection, views: list[View]) -> None:
    best = engine.index.image_numbers[engine.score(views[0]).argmax()]
    assert best == number_of(collection, ASKED)


def test_the_terms_of_a_view_are_scored_where_an_engine_can_be_expanded(engine: Engine, views: list[View]) -> None:
    if not find_engine(engine.options.engine).expands:
        with pytest.raises(CairnError, match="Expansion works on visual words"):
            replace(engine.options, expand="average")
        return
    if find_engine(engine.options.engine).signed:
        return  # by features and their signatures: see `test_signatures_vote_for_what_was_added`
    upright, turned = views
    scores = engine.score(upright)
    equal = np.full(len(upright.words), 0.25, np.float32)
    # Only the proportions of weights matter to a cosine.
    np.testing.assert_allclose(engine.score(replace(upright, weights=equal)), scores, rtol=1e-5, atol=1e-6)
    others = engine.score(replace(upright, terms=turned.words))
    np.testing.assert_array_equal(others, engine.score(turned))
    assert not np.allclose(others, scores, atol=1e-3)


# Verification


def test_a_photo_is_verified_with_itself_each_feature_once(
    engine: Engine, collection: Collection, views: list[View]
) -> None:
    number = number_of(collection, ASKED)
    found = engine.verify(views[0], number)
    assert found.inliers > 0.5 * len(views[0].words)
    np.testing.assert_allclose(found.transform, [[1, 0, 0], [0, 1, 0]], atol=0.01)
    sizes = len(views[0].words), len(engine.index.images.features(number).words)
    for side, most in enumerate(sizes):
        assert len(np.unique(found.matches[:, side])) == len(found.matches)
        assert np.isin(found.matches[:, side], np.arange(most)).all()


def test_another_view_of_an_object_is_verified_and_another_object_is_not(
    engine: Engine, collection: Collection, views: list[View]
) -> None:
    same, other = (engine.verify(views[0], number_of(collection, stem)) for stem in ("coffee_003", "page_002"))
    assert same.inliers >= 20 > other.inliers
    assert (other.transform is None) == (other.inliers == 0)


# A new engine: a file, and a line in the registry


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, entry in ENTRIES.items():
        monkeypatch.setitem(ENGINES, name, entry)


@pytest.mark.usefixtures("registered")
def test_a_new_engine_ranks_and_the_searcher_verifies(collection: Collection, views: list[View]) -> None:
    numbers = collection.index.image_numbers.tolist()
    plain, verified = (Searcher(collection, SearchOptions(engine=name)).search(views).hits for name in ENTRIES)
    assert [hit.number for hit in plain] == numbers[::-1]
    inliers = [hit.verification.inliers for hit in verified]
    assert inliers == sorted(inliers, reverse=True) and verified[0].number == number_of(collection, ASKED)
    assert sorted(hit.number for hit in verified) == numbers
    with pytest.raises(CairnError, match=r"choose one of the engines tf-idf, .*signatures-sp, asmk, asmk-sp with it"):
        SearchOptions(engine="newest", expand="average")


@pytest.mark.usefixtures("registered")
def test_the_command_line_takes_a_new_engine(cairn: Callable[..., Ran], indexed: Indexed) -> None:
    asked = ("query", indexed.folder, f"{ASKED}.jpg", "--turns", 1, "--top", 1000)
    told = cairn(*asked, "--engine", "newest", "--json").json
    assert told["engine"] == "newest"
    ranked = [entry["number"] for entry in told["results"]]
    assert len(ranked) > 5 and ranked == sorted(ranked, reverse=True)
    assert f"one of {', '.join([BEST, *ENGINES])}" in cairn(*asked, "--engine", "magic").refused()


@pytest.mark.slow
def test_a_worker_of_the_server_takes_a_new_engine(collection: Collection, indexed: Indexed) -> None:
    number = number_of(collection, ASKED)
    # The engine is registered for this test alone, so the model does not know its name.
    how: dict[str, Any] = {"queries": [QueryPhoto(photo=number)], "turns": 1}
    search = SearchRequest(**how, top=1000).model_dump(mode="json") | {"engine": "newest"}
    explain = MatchRequest(**how, photo=number_of(collection, "coffee_003")).model_dump(mode="json") | {
        "engine": "newest"
    }
    pool = WorkerPool(make_jobs, (str(indexed.folder),), WorkerPoolOptions(workers=1))
    try:
        answer, _ = pool.submit("search", search).result(60)
        ranked = [entry["number"] for entry in answer["results"]]
        assert answer["engine"] == "newest" and ranked == sorted(ranked, reverse=True)
        # The geometry of a match is that of the engine that the entry names.
        match, _ = pool.submit("match", explain).result(60)
        assert match["inliers"] >= 20
    finally:
        pool.close()


@pytest.mark.slow
def test_help_the_api_and_the_page_offer_a_new_engine() -> None:
    """In a process of its own: they are made when their modules are imported."""
    script = """
import json
from retrieval.search.engines.registry import ENGINES, EngineEntry
ENGINES["toy"] = EngineEntry("toy", "a:B", "For <play>", note="for play", needs="a toy box")
from index.options.declaration import options_of
from retrieval.search.options import SearchOptions
from retrieval.web.search_models import HowToMatch, SearchRequest
from retrieval.web.routes.pages import engine_choices
asked = SearchRequest(queries=[{"photo": 1}], engine="toy")
field = HowToMatch.model_json_schema()["properties"]["engine"]
text = options_of(SearchOptions)["engine"].option.help
print(json.dumps([text, asked.engine, field["enum"], field["description"], engine_choices()]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    text, asked, enum, description, choices = json.loads(done.stdout)
    assert (
        text
        == "Engine: best (signatures-sp where features have signatures, else tf-idf-sp), tf-idf, tf-idf-sp (the best "
        "verified by geometry), signatures (words and a few bits of each feature; needs --signature), signatures-sp "
        "(the best of them verified by geometry), asmk (the features of a word aggregated; needs --signature), asmk-sp "
        "(the best of them verified by geometry), raw (needs --keep-descriptors) or toy (for play)."
    )
    assert asked == "toy" and enum == [BEST, *NAMES, "toy"]
    assert description == text
    assert '<option value="toy" data-verified="none">For &lt;play&gt;</option>' in choices
    assert choices.startswith(f'<option value="{DEFAULT}"')


def test_the_names_are_known_without_anything_slow() -> None:
    script = "import sys, retrieval.search.engines.registry, retrieval.regions.detectors.registry as _; "
    script += "sys.exit(any(name in sys.modules for name in ('numpy', 'cv2', 'scipy', 'sqlalchemy')))"
    assert subprocess.run([sys.executable, "-c", script], cwd=Path(ROOT), check=False).returncode == 0
