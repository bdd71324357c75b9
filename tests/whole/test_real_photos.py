"""What Cairn reaches on real photos. Needs CAIRN_DATASETS; the floors are a little below what was measured."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from eval.benchmark import run_queries
from eval.repeatability import repeatability
from learning.labels.ground_truth import read_ground_truth
from learning.measures.precision import mean_average_precision
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.commands.options import cores
from retrieval.indexing.adding import index_photos
from retrieval.photos.decoding import read_photo
from retrieval.regions.detection import detect_regions
from retrieval.regions.detectors.registry import find_detector
from retrieval.regions.options import RegionOptions
from retrieval.search.engines.registry import EXPANSIONS
from retrieval.search.options import SearchOptions

DATASETS = Path(os.environ.get("CAIRN_DATASETS") or "nowhere")
pytestmark = [
    pytest.mark.photos,
    pytest.mark.skipif(not DATASETS.is_dir(), reason="CAIRN_DATASETS names no folder of real photos"),
]

Score = Callable[[SearchOptions], float]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, int], Score]]:
    """Give, for a set, what scores every n-th of its queries; the set is indexed once."""
    opened: dict[str, Collection] = {}

    def make(name: str, step: int) -> Score:
        folder = DATASETS / name
        if name not in opened:
            target = tmp_path_factory.mktemp(name) / f"{name}.cairn"
            opened[name] = Collection.create(target, CollectionOptions(signature="none"))
            index_photos(opened[name], [folder / "images"], workers=cores())
        queries = [query for query in read_ground_truth(folder / "gt") if query.positives][::step]
        extra = folder / "queries" if (folder / "queries").is_dir() else None

        def score(options: SearchOptions) -> float:
            scores, missing = run_queries(opened[name], queries, extra, options)
            assert missing == []
            return mean_average_precision([one.ap for one in scores])

        return score

    yield make
    for collection in opened.values():
        collection.catalogue.close()


def check(score: Score, plain: float, verified: float) -> None:
    tf_idf, tf_idf_sp = (score(SearchOptions(engine=engine)) for engine in ("tf-idf", "tf-idf-sp"))
    expanded = [score(SearchOptions(expand=name)) for name in EXPANSIONS if name != "none"]
    assert tf_idf >= plain
    assert tf_idf_sp >= max(verified, tf_idf)
    assert min(expanded) >= tf_idf_sp - 0.001


@pytest.mark.slow
def test_photos_of_paintings_find_their_paintings(scorer: Callable[[str, int], Score]) -> None:
    check(scorer("paintings", 10), 0.82, 0.93)


@pytest.mark.slow
def test_all_paintings(scorer: Callable[[str, int], Score]) -> None:
    check(scorer("paintings", 1), 0.84, 0.94)


@pytest.mark.slow
def test_all_landmarks(scorer: Callable[[str, int], Score]) -> None:
    check(scorer("landmarks", 1), 0.94, 0.96)


@pytest.mark.parametrize("detector", ["dog-affine", "hessian-affine"])
def test_regions_repeat_under_a_change_of_viewpoint(detector: str) -> None:
    """Graffiti seen at 30 and at 50 degrees (Mikolajczyk et al. 2005): round regions find nothing at 50."""
    folder = DATASETS / "matching" / "vgg_affine" / "graf"

    def regions(number: int) -> tuple[np.ndarray, tuple[int, int]]:
        grey = read_photo(folder / f"img{number}.jpg").grey
        ellipses = detect_regions(grey, RegionOptions(detector=detector)).ellipses.astype(np.float64)
        # Three scales across for either detector, as in scripts/repeatability.py.
        ellipses[:, 2:] *= (find_detector(detector).radius / 3) ** 2
        return ellipses, grey.shape

    first, shape = regions(1)
    for number, floor in ((3, 0.54), (5, 0.23)):
        other, other_shape = regions(number)
        homography = np.loadtxt(folder / f"H1to{number}p")
        assert repeatability(first, other, homography, shape, other_shape).repeatability > floor
