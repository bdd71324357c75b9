"""Queries of the panel give the results of searches, with stored views; a stopped run can be resumed."""

from pathlib import Path

import pytest

from eval.panel import measuring
from eval.panel.measuring import measure
from eval.panel.parts import PanelPart, PanelQuery
from eval.tables.sets import RetrievalSet
from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.photos.options import ImageOptions
from retrieval.search.answers import ask_with_file, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.conftest import Indexed

SMALL = CollectionOptions(words=120, iterations=3, image=ImageOptions(max_side=200), seed=1, signature="hamming-64")
SEARCH = SearchOptions(turns=4)


@pytest.fixture(scope="module")
def part(indexed: Indexed) -> PanelPart:
    photos = RetrievalSet("demo", (indexed.photos,), indexed.gt)
    queries = []
    for query, path in photos.pairs():
        for turn in (0, 90):
            name = f"{query.name}-{turn}"
            box = None if turn else query.box
            queries.append(PanelQuery(name, "solid thing", name[:4], path, box, query.positives, query.junk, turn))
    return PanelPart(photos, queries[:4])


@pytest.mark.slow
def test_kept_views_find_what_searching_finds(part: PanelPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = measure([part], tmp_path, SEARCH, collection=SMALL)
    assert list(found) == [f"demo/{query.name}" for query in part.queries]
    (folder,) = tmp_path.glob("collections/*/demo-*.cairn")
    with Collection.open(folder) as collection:
        searcher = Searcher(collection, SEARCH)
        for query in part.queries:
            one = found[f"demo/{query.name}"]
            assert (one.kind, one.scene, one.positives) == (query.kind, query.scene, len(query.positives))
            assert one.seconds > 0
            if query.turn:
                continue
            asked = ask_with_file(collection, query.name, query.path, query.box)
            answer = search_photo(searcher, asked).answer
            told = {(hit.probability, hit.verification.inliers) for hit in answer.hits[:50]}
            assert {(probability, inliers) for probability, inliers, _ in one.photos} <= told
            assert any(right for *_, right in one.photos)
    monkeypatch.setattr(measuring, "_ask", None)  # no query is repeated
    assert measure([part], tmp_path, SEARCH, collection=SMALL) == found
    assert not list(tmp_path.glob("views/*/*/*.png"))


@pytest.mark.slow
def test_damaged_views_are_told_of(part: PanelPart, tmp_path: Path) -> None:
    measure([part], tmp_path, SEARCH, collection=SMALL)
    for path in tmp_path.glob("views/*/*/*.npz"):
        path.write_bytes(b"no views")
    with pytest.raises(CairnError, match="views of a query"):
        measure([part], tmp_path, SearchOptions(turns=2), collection=SMALL)
