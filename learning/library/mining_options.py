"""Options of mining matches from photos."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index.options.declaration import Option, option_of
from index.options.panels import IMAGE_PAIRS, REGIONS, RUNNING
from index.parallel import WORKERS
from index.text import one_of
from learning.library.choices import AS_PUBLISHED
from retrieval.collection.options import CollectionOptions
from retrieval.regions.detectors.registry import DETECTORS


@dataclass(frozen=True)
class MiningChoices:
    """Options of mining; None means the collection's value, or the default."""

    pairs: Annotated[
        int,
        Option("Image pairs to try; 0: 2,000 where a ranking proposes them, 10,000 random ones.", IMAGE_PAIRS, least=0),
    ] = 0
    geometry: Annotated[
        str,
        Option(
            "How it is known where a photo's regions are in another: homography (found between photos that show the "
            "same), views (the other is a view of it that is rendered: turned, stretched, blurred, noisy), or both.",
            IMAGE_PAIRS,
            metavar="NAME",
        ),
    ] = "homography"
    views: Annotated[
        int, Option("Photos that a view is rendered of, with --geometry views or both; 0: 100.", IMAGE_PAIRS, least=0)
    ] = 0
    inliers: Annotated[
        int, Option("Fewest matches that must agree on an affine map between two photos.", IMAGE_PAIRS, least=4)
    ] = 50
    propose: Annotated[
        str | None,
        Option(
            "Image pairs: random, or ranking (photos that a collection's tf-idf index ranks high for each other). By "
            "default ranking, where the source is a collection with a vocabulary.",
            IMAGE_PAIRS,
            metavar="NAME",
        ),
    ] = None
    model: Annotated[
        str,
        Option(
            "Map between two photos: projective, fixed from the affine one's matches, or affine.",
            IMAGE_PAIRS,
            metavar="NAME",
        ),
    ] = "projective"
    descriptor: Annotated[
        str,
        Option(
            "Descriptor whose matches the maps are found by; what is positive does not depend on it.",
            IMAGE_PAIRS,
            metavar="NAME|FILE",
            local=True,
            extends="descriptor",
        ),
    ] = "rootsift"
    detector: Annotated[
        str | None,
        Option(
            f"{one_of(DETECTORS)} (default: the collection's own, or dog-affine).",
            REGIONS,
            metavar="NAME",
            extends="detector",
        ),
    ] = None
    measurement_scale: Annotated[float | None, option_of(CollectionOptions, "measurement_scale")] = None
    extent: Annotated[
        float,
        Option(
            "Side of the patches to learn from, as a multiple of the detector's measurement region; what is learnt "
            "describes as much. With --measurement-scale patches are of that scale.",
            REGIONS,
        ),
    ] = 1.45
    upright: Annotated[
        bool | None,
        Option(
            "Assume that photos are upright, or turn each patch to its dominant orientation (default: as in the "
            "collection, or upright).",
            REGIONS,
            flags=("--upright/--rotated",),
        ),
    ] = None
    max_side: Annotated[
        int | None,
        Option(
            "Longer side at which photos are read, pixels; 0: as they are (default: as the collection, or 1024).",
            REGIONS,
            least=0,
            metavar="PIXELS",
        ),
    ] = None
    work: Annotated[
        Path | None,
        Option(
            "Folder of what is computed on the way, kept, to mine again with other options. By default one next to the "
            "file, removed in the end.",
            RUNNING,
        ),
    ] = None
    workers: Annotated[int, WORKERS] = 0
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0
    as_published: Annotated[bool, AS_PUBLISHED] = False
