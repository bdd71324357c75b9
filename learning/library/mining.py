"""Mining matches from photos, as a function of `import cairn`; `cairn mine` calls the same."""

import tempfile
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from index.attributes import some_of
from index.docstrings import documented
from index.errors import CairnError
from index.options.arguments import takes_options
from index.options.declaration import build
from learning.library.mining_options import MiningChoices
from learning.library.paragraphs import SAID
from learning.library.paths import AnyPath, Paths, as_path, as_paths
from learning.library.published import of_mining, published
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from learning.mining.matches import MinedMatches
    from learning.mining.mining import MiningReport
    from learning.mining.photo_source import PhotoSource
    from retrieval.features.options import FeatureOptions
    from retrieval.library.collection import Collection
    from retrieval.photos.options import ImageOptions

TITLES = {"features": "Features", "views": "Views", "pairs": "Image pairs", "patches": "Patches"}
"""Titles of the steps."""


@documented
@dataclass(frozen=True)
class Mined:
    """A file of mined matches, and its contents.

    Examples
    --------
    >>> import cairn
    >>> mined = cairn.mine("photos", "matches.npz")  # doctest: +SKIP
    >>> mined.matches.patches[mined.matches.reference]  # (F, 31, 31), the patch of each feature  # doctest: +SKIP
    """

    path: Annotated[
        Path, "The file (.npz), which `cairn.learn_descriptor` takes. A temporary one is removed with this object."
    ]
    pairs: Annotated[int, "Number of kept image pairs."]
    features: Annotated[int, "Number of reference features with a match."]
    positives: Annotated[int, "Number of matching patches of all reference features."]
    negatives: Annotated[int, "Number of non-matching patches."]
    ambiguous: Annotated[int, "Number of patches of all reference features that are neither, and are ignored."]
    failed: Annotated[list[dict[str, str]], "Unusable photos: ``path`` and ``reason``."]
    _report: "MiningReport" = field(repr=False)
    _seconds: float = field(repr=False)

    @cached_property
    def matches(self) -> "MinedMatches":
        """Contents of the file, a `MinedMatches`: patches and matches.

        Its attributes are the arrays of the file's format by name; the lists of patches are ``positive_patches``,
        ``ambiguous_patches`` and ``target_patches``.
        """
        from learning.mining.matches import MinedMatches

        return MinedMatches.open(self.path)

    @property
    def proposals(self) -> str:
        """How image pairs were proposed: random, ranking, or views."""
        return self._report.proposals

    def to_dict(self) -> dict[str, Any]:
        """Return what `cairn mine --json` prints."""
        report = self._report
        return {
            "matches": str(self.path),
            "proposals": report.proposals,
            "image_pairs_tried": report.tried,
            "image_pairs_kept": report.kept,
            **some_of(report, "photos", "patches", "features", "positives", "negatives", "ambiguous", "failed"),
            "seconds": self._seconds,
        }


@published(of_mining)
@takes_options(MiningChoices, said=SAID)
def mine(
    photos: "Paths | Collection",
    out: AnyPath | None = None,
    *,
    cluster: str | None = None,
    catalogue: str | None = None,
    progress: Telling = None,
    **options: Any,
) -> Mined:
    """Mine matches to learn a descriptor from, out of photos without any label.

    Photos that show the same thing are found by matching features, or views of photos are rendered. From then on
    geometry alone decides: a feature of the first photo has those features of the second as positives whose regions,
    mapped to the first, overlap its own by more than 0.6, and those as negatives that overlap it by less than 0.3.

    Parameters
    ----------
    photos : path, list of paths, or Collection
        A collection, or its folder; a folder of photos; or several folders and files.
    out : path, optional
        File of matches (.npz) to write. None: one in a temporary folder, which is removed with the result.
    cluster : str, optional
        Address of a Dask scheduler whose workers do the work in place of processes.
    catalogue : str, optional
        Address of the collection's catalogue, where it is on a server.
    {progress}
    {options}

    Returns
    -------
    Mined

    Raises
    ------
    CairnError
        There are no two photos that show the same, or too little in them; options do not go together; or the file
        cannot be written.

    Notes
    -----
    Source: Simonyan, Vedaldi, Zisserman, Learning Local Feature Descriptors Using Convex Optimisation, TPAMI 2014,
    section 9 ("Pre-processing") and 10.2.2. A run that was stopped goes on when it is called again.

    Examples
    --------
    >>> import cairn
    >>> mined = cairn.mine("photos", "matches.npz")  # doctest: +SKIP
    >>> descriptor = cairn.learn_descriptor(mined, "descriptor.npz")  # doctest: +SKIP
    >>> cairn.mine([])
    Traceback (most recent call last):
    index.errors.CairnError: photos must be one path at least.
    """
    from learning.mining.homographies import MapOptions
    from learning.mining.mining import MiningOptions, mine_matches
    from retrieval.library.cluster import at_work
    from retrieval.shards.cluster import open_shards

    began, how = perf_counter(), build(MiningChoices, options)
    paths, work = as_paths(photos, "photos"), how.work
    with ExitStack() as scratch:
        if out is not None:
            file = as_path(out, "out")
        else:
            file = Path(scratch.enter_context(tempfile.TemporaryDirectory(prefix="cairn-mined-"))) / "matches.npz"
        if file.suffix != ".npz":
            raise CairnError(f"{file} must end with .npz, by which a file of matches is known: choose {file}.npz.")
        if not file.parent.is_dir():
            raise CairnError(f"{file.parent} is not a folder: make it first, or write the matches elsewhere.")
        if cluster is not None:  # its workers run in other folders
            paths, file = [path.resolve() for path in paths], file.resolve()
            work = work.resolve() if work is not None else None
        if how.views and how.geometry == "homography":
            raise CairnError("{--views} goes with {--geometry} views or both: without it no view is rendered.")
        if how.geometry == "views" and (how.pairs or how.propose is not None):
            raise CairnError("{--pairs} and {--propose} are of photos that show the same: {--geometry} views has none.")
        source = open_photos(paths, catalogue=catalogue)
        try:
            regions = _regions(source, how)
            mining = MiningOptions(
                map=MapOptions(how.inliers, how.model, strongest=0 if how.as_published else MapOptions.strongest),
                features=regions[0],
                image=regions[1],
                **some_of(how, "geometry", "pairs", "views", "propose", "seed", "descriptor", "extent"),
            )
            with at_work(cluster, how.workers, work or file.parent) as hands, telling(progress, TITLES) as tell:
                if not isinstance(hands, int) and source.collection is not None and source.collection.has_vocabulary:
                    source = replace(source, shards=open_shards(source.collection, hands))
                report = mine_matches(source, file, mining, work=work, workers=hands, progress=tell)
        finally:
            if source.collection is not None:
                source.collection.catalogue.close()
        counts = report.kept, report.features, report.positives, report.negatives, report.ambiguous
        mined = Mined(file, *counts, report.failed, report, round(perf_counter() - began, 3))
        weakref.finalize(mined, scratch.pop_all().close)  # remove the file with the result if it is temporary
    return mined


def open_photos(paths: Sequence[Path], *, catalogue: str | None = None) -> "PhotoSource":
    """List the photos of a collection, or of folders and files."""
    from learning.mining.photo_source import PhotoSource
    from retrieval.collection.layout import OPTIONS
    from retrieval.photos.listing import list_photos

    if len(paths) == 1 and paths[0].is_dir():
        return PhotoSource.open(paths[0], catalogue=catalogue)
    if collections := [path for path in paths if (path / OPTIONS).is_file()]:
        raise CairnError(
            f"{collections[0]} is a collection, and cannot be mined together with something else: index all photos as "
            "one collection."
        )
    name = paths[0].resolve().name
    return PhotoSource(
        name if len(paths) == 1 else f"{name} and {len(paths) - 1} more", [photo for _, photo in list_photos(paths)]
    )


def _regions(source: "PhotoSource", choices: MiningChoices) -> tuple["FeatureOptions", "ImageOptions"]:
    """Options of finding regions and reading photos: those of a collection, unless overridden."""
    from retrieval.features.options import FeatureOptions
    from retrieval.photos.options import ImageOptions
    from retrieval.regions.options import RegionOptions

    own = source.collection.options if source.collection is not None else None
    features = own.features if own is not None else FeatureOptions()
    image = own.image if own is not None else ImageOptions()
    if choices.detector is not None and choices.detector != features.regions.detector:
        # The collection's thresholds and scale are those of its detector.
        features = FeatureOptions(RegionOptions(detector=choices.detector), upright=features.upright)
    if choices.measurement_scale is not None:
        features = replace(features, measurement_scale=choices.measurement_scale)
    if choices.upright is not None:
        features = replace(features, upright=choices.upright)
    if choices.max_side is not None:
        image = replace(image, max_side=choices.max_side)
    return features, image
