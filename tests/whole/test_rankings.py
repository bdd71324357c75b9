"""What a search answers, compared with answers that were recorded: work on the code must not change them unseen.

`rankings.json` holds, for every query of the small collection and every engine, the photos with their scores and
inliers. All processors with AVX2 give the same features, words and signatures, whatever linear algebra and threads
there are: everything after is then the same, but for the last digit of scores. Another processor's OpenCV filters
photos otherwise, and words made of other features are others: the photos that surely show the same are found all the
same, before all others. After a change that is meant to change answers: ``python -m tests.whole.test_rankings`` records
them again.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from learning.labels.ground_truth import read_ground_truth
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.search.engines.registry import VerifiedPhotos, find_engine
from retrieval.search.options import SearchOptions
from tests.conftest import Indexed
from tests.support.searching import ask_for

RECORDED = Path(__file__).with_name("rankings.json")
SETTINGS = {
    "tf-idf": SearchOptions(engine="tf-idf"),
    "tf-idf-sp": SearchOptions(engine="tf-idf-sp"),
    "tf-idf-sp, expanded": SearchOptions(engine="tf-idf-sp", expand="average"),
    "tf-idf, discriminative": SearchOptions(engine="tf-idf", expand="discriminative"),
    "signatures": SearchOptions(engine="signatures"),
    "signatures-sp": SearchOptions(engine="signatures-sp"),
    "raw": SearchOptions(engine="raw"),
}
SURE = 100  # inliers, which another processor's filters do not take away


def features_of(collection: Collection) -> str:
    """SHA-256 of all features that the photos of a collection are searched by."""
    digest = hashlib.sha256()
    for number in collection.index.image_numbers.tolist():
        image = collection.index.images.features(number)
        digest.update(image.words.tobytes())
        for name in sorted(image.columns):
            digest.update(image.columns[name].tobytes())
    return digest.hexdigest()


def rankings_of(folder: Path, gt: Path, name: str) -> dict[str, list[list[Any]]]:
    """Name, score and inliers of each photo that a search finds, best first, by query."""
    with Collection.open(folder) as collection:
        names = {Path(row.path).stem: str(row.name) for row in collection.catalogue.read(all_indexed)}
    found = {}
    for query in read_ground_truth(gt):
        results = ask_for(folder, names[query.stem], query.box, options=SETTINGS[name])
        found[query.name] = [[one.name, one.score, one.inliers] for one in results]
    return found


# Those that are verified are ranked by these first.
RANKED_ALONE = [pytest.param(name, marks=pytest.mark.slow) for name in ("tf-idf", "signatures")]


@pytest.mark.parametrize("name", [*RANKED_ALONE, *(name for name in SETTINGS if name not in ("tf-idf", "signatures"))])
def test_rankings_are_those_that_were_recorded(indexed: Indexed, opened: Collection, name: str) -> None:
    recorded = json.loads(RECORDED.read_text())
    expected = {query: rankings[name] for query, rankings in recorded["rankings"].items()}
    found = rankings_of(indexed.folder, indexed.gt, name)
    assert found.keys() == expected.keys()
    if features_of(opened) == recorded["features"]:
        for query, results in expected.items():
            assert [(photo, inliers) for photo, _, inliers in found[query]] == [(one[0], one[2]) for one in results]
            # Written with six digits.
            assert [one[1] for one in found[query]] == pytest.approx([one[1] for one in results], abs=1.5e-6)
        return
    for query, rankings in recorded["rankings"].items():
        sure = {photo for photo, _, inliers in rankings["tf-idf-sp"] if inliers >= SURE}
        assert {photo for photo, _, _ in found[query][: len(sure)]} == sure
        if find_engine(SETTINGS[name].engine).verified is not VerifiedPhotos.NONE:
            assert all(inliers > 0 for photo, _, inliers in found[query] if photo in sure)


def _record() -> None:
    """Write `rankings.json`: a line a ranking, so that a change can be read."""
    import tempfile

    from eval.demo import synthetic
    from retrieval.collection.options import CollectionOptions
    from retrieval.indexing.adding import index_photos
    from tests.conftest import DISTRACTORS, OBJECTS, VIEWS

    synthetic._OBJECTS = tuple(entry for entry in synthetic._OBJECTS if entry[0] in OBJECTS)
    with tempfile.TemporaryDirectory() as scratch:
        demo = synthetic.build_demo_collection(Path(scratch) / "photos", views=VIEWS, distractors=DISTRACTORS)
        folder = Path(scratch) / "demo.cairn"
        with Collection.create(folder, CollectionOptions(keep_descriptors=True, signature="hamming-64")) as collection:
            index_photos(collection, [demo.images])
            features = features_of(collection)
        by_engine = {name: rankings_of(folder, demo.gt, name) for name in SETTINGS}
    queries = [
        f"  {json.dumps(query)}: {{\n"
        + ",\n".join(f"   {json.dumps(name)}: {json.dumps(found[query])}" for name, found in by_engine.items())
        + "\n  }"
        for query in next(iter(by_engine.values()))
    ]
    RECORDED.write_text(
        f'{{\n "features": {json.dumps(features)},\n "rankings": {{\n' + ",\n".join(queries) + "\n }\n}\n"
    )


if __name__ == "__main__":
    _record()
