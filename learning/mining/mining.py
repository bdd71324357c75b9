"""Mining of training matches from unannotated photos (Simonyan14, section 9, "Pre-processing")."""

import shutil
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from index.errors import CairnError
from index.parallel import Workers, run
from index.progress import Progress, silent
from index.text import printable
from learning.mining.assembly import Assembly
from learning.mining.chunks import Chunk
from learning.mining.homographies import MapOptions
from learning.mining.image_pairs import MinedPhoto, Overlaps
from learning.mining.photo_source import PhotoSource
from learning.mining.views import RenderedView, ViewOptions, write_view
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.features.staging import Staging, stage_all
from retrieval.metadata.pages import file_of, hash_photo
from retrieval.photos.options import ImageOptions

FEATURES = "features"
"""Subfolder of the work folder for the photos' features."""

RENDERED = "views"
"""Subfolder of the work folder for rendered views."""

GEOMETRIES = ("homography", "views", "both")
"""Sources of the map between two photos: homographies estimated between overlapping photos, as in the paper; rendered
views, whose map is known (see `views`); or both."""

_CHUNK = 16  # image pairs per file of results
_NAMED = 40  # letters of a photo's name in that of its view


class TooLittle(CairnError):
    """The photos do not overlap, or too little to learn from."""


@dataclass(frozen=True)
class MiningOptions:
    """Options of mining."""

    geometry: str = "homography"  # one of `GEOMETRIES`
    pairs: int = 0  # image pairs to try; 0: see `photo_source.PAIRS`
    views: int = 0  # number of photos with a rendered view; 0: see `photo_source.VIEWS`
    view: ViewOptions = field(default_factory=ViewOptions)  # how views differ from their photos
    propose: str | None = None  # random or ranking; None: ranking if the source is a collection with a vocabulary
    map: MapOptions = field(default_factory=MapOptions)  # the maps of pairs, and which pairs are kept
    overlaps: Overlaps = field(default_factory=Overlaps)  # thresholds for positives and negatives
    least: int = 500  # least reference features of a file
    seed: int = 0
    descriptor: str = "rootsift"  # descriptor whose matches give the maps
    features: FeatureOptions = field(default_factory=FeatureOptions)  # regions and patches
    image: ImageOptions = field(default_factory=ImageOptions)  # how photos are read
    # Ratio of the patches' side to that of the measurement regions, whose overlap defines positives. More surroundings
    # distinguish features better, up to a point: docs/measurements/without-labels.md.
    extent: float = 1.45

    def __post_init__(self) -> None:
        if not 0.1 <= self.extent <= 10:
            raise CairnError(f"The extent of patches must lie between 0.1 and 10, and is {self.extent}.")
        if self.geometry not in GEOMETRIES:
            raise CairnError(f"There is no geometry {self.geometry!r}; choose one of {', '.join(GEOMETRIES)}.")
        if self.pairs < 0:
            raise CairnError(f"The number of image pairs cannot be {self.pairs}.")
        if self.views < 0:
            raise CairnError(f"The number of views cannot be {self.views}.")


@dataclass(frozen=True)
class MiningReport:
    """Report of mining."""

    proposals: str  # random, ranking, or views if there are only those
    tried: int  # image pairs
    kept: int
    photos: int  # of the kept pairs
    patches: int
    features: int  # reference features
    positives: int  # of all reference features together
    negatives: int
    ambiguous: int
    failed: list[dict[str, str]]  # path and reason of unusable photos


def mine_matches(
    source: PhotoSource,
    out: Path,
    options: MiningOptions,
    *,
    work: Path | None = None,
    workers: Workers = 1,
    progress: Progress = silent,
) -> MiningReport:
    """Mine matches from photos, and write them to a file (see `learning.mining.matches`).

    Homographies are estimated from matches of descriptors, or known from rendering views. Then P(x) and N(x) of each
    feature x of a first photo follow from the overlap of measurement regions alone.
    """
    folder = work or out.with_name(f"{out.name}.mining")
    how, proposed, viewed = _propose(source, options)
    extractor = Extractor(find_descriptor(options.descriptor), options.features)
    staging = Staging(folder / FEATURES, extractor, options.image)
    try:
        paths = {int(at): source.paths[at] for at in np.unique(np.concatenate([proposed.ravel(), viewed]))}
        photos, failed = _stage(paths, staging, workers, progress)
        _refuse_too_few(photos, failed, source, options)
        pairs = [(int(one), int(two)) for one, two in proposed if one in photos and two in photos]
        maps: list[NDArray[np.float64] | None] = [None] * len(pairs)
        views = _render(photos, viewed, folder / RENDERED, options, workers)
        # Views are treated as photos, numbered after those of the source.
        rendered = dict(enumerate(views, start=len(source.paths)))
        more, _ = _stage({at: view.path for at, (_, view) in rendered.items()}, staging, workers, progress, "views")
        pairs += ((rendered[number][0], number) for number in more)
        maps += (rendered[number][1].homography for number in more)
        names = {at: printable(path.stem) for at, path in paths.items()}
        names |= {number: printable(rendered[number][1].path.stem) for number in more}
        photos |= more
        # Results that depend on pairs and thresholds have a separate folder; features depend only on the extractor.
        key = _key(pairs, photos, options, extractor)
        results = folder / f"pairs-{key[:16]}"
        results.mkdir(exist_ok=True)
        chunks = _chunks(results, [(photos[one], photos[two]) for one, two in pairs], maps)
        _mine(chunks, staging, options, workers, len(pairs), progress)
        # An explicit scale is also used by the learnt descriptor.
        extent = options.extent if options.features.measurement_scale is None else 1.0
        assembly = Assembly(chunks, photos, pairs, extent)
        _refuse_too_little(assembly, source, options, len(pairs))
        meta = {
            "source": source.name,
            "proposals": how,
            "seed": options.seed,
            "options": asdict(options),
            "measurement_scale": extractor.measurement_scale,
            "extent": extent,
            "image_pairs_tried": len(pairs),
            "fingerprints": {"extractor": extractor.fingerprint, "run": key},
        }
        assembly.cut_patches(results / "patches.raw", staging, workers, progress)
        assembly.write(out, results / "patches.raw", staging, names, meta)
    except CairnError:
        _leave(folder, work)
        raise
    _leave(folder, work)
    counts = assembly.patches, assembly.features, assembly.positives, assembly.negatives, assembly.ambiguous
    failures = [{"path": path, "reason": reason} for path, reason in failed]
    return MiningReport(how, len(pairs), len(assembly.kept), len(assembly.photos), *counts, failures)


def _propose(source: PhotoSource, options: MiningOptions) -> tuple[str, NDArray[np.int64], NDArray[np.int64]]:
    """Propose image pairs (T, 2), and photos (V,) for views; also return how the pairs were found."""
    how, pairs, viewed = "views", np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    if options.geometry != "views":
        how, pairs = source.propose(options.propose, options.pairs, options.seed)
    if options.geometry != "homography":
        viewed = source.choose(options.views, options.seed)
    return how, pairs, viewed


def _stage(
    paths: dict[int, Path], staging: Staging, workers: Workers, progress: Progress, step: str = "features"
) -> tuple[dict[int, MinedPhoto], list[tuple[str, str]]]:
    """Extract the features of photos; return them by number, and (path, reason) of failed photos."""
    keys: dict[int, str] = {}
    failed = []
    for at, path in paths.items():
        try:
            if not file_of(path).is_file():
                raise CairnError("there is no such file, or it cannot be read")
            keys[at] = hash_photo(path)
        except (CairnError, OSError) as error:
            failed.append((printable(str(path)), str(getattr(error, "strerror", None) or error)))
    photos = {}
    listed = [(paths[at], key) for at, key in keys.items()]
    for done, ((at, key), staged) in enumerate(zip(keys.items(), stage_all(staging, listed, workers), strict=True)):
        if staged.reason is None:
            photos[at] = MinedPhoto(paths[at], key, staged)
        else:
            failed.append((printable(str(paths[at])), staged.reason))
        progress(step, done + 1, len(keys))
    return photos, failed


def _key(
    pairs: list[tuple[int, int]], photos: dict[int, MinedPhoto], options: MiningOptions, extractor: Extractor
) -> str:
    """Key of a run, by pairs, photos and options."""
    about = {
        "options": asdict(options),
        "extractor": extractor.fingerprint,
        "photos": {str(at): photo.key for at, photo in photos.items()},
    }
    return fingerprint({"pairs": np.array(pairs, np.int64).reshape(-1, 2)}, about)


def _render(
    photos: dict[int, MinedPhoto], viewed: NDArray[np.int64], folder: Path, options: MiningOptions, workers: Workers
) -> list[tuple[int, RenderedView]]:
    """Render a view of each chosen photo; return the views with the photos' numbers."""
    # Only one view of duplicate photos: a second one would leak training data into validation.
    chosen = sorted({photos[at].key: at for at in reversed(viewed.tolist()) if at in photos}.values())
    if not chosen:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    tasks = []
    for photo in (photos[at] for at in chosen):
        target = folder / f"{photo.path.stem[:_NAMED]}-view-{photo.key[:8]}.jpg"
        drawn = options.seed, int(photo.key[:16], 16)
        tasks.append(partial(write_view, photo.path, options.image, target, options.view, drawn))
    return list(zip(chosen, run(tasks, workers), strict=True))


def _chunks(
    folder: Path, pairs: list[tuple[MinedPhoto, MinedPhoto]], maps: list[NDArray[np.float64] | None]
) -> list[Chunk]:
    """Divide image pairs into chunks with results in a folder."""
    chunks = []
    for start in range(0, len(pairs), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(pairs)))
        numbers = list(range(part.start, part.stop))
        chunks.append(Chunk(folder / f"{start:09d}.npz", numbers, pairs[part], maps[part]))
    return chunks


def _mine(
    chunks: list[Chunk], staging: Staging, options: MiningOptions, workers: Workers, pairs: int, progress: Progress
) -> None:
    done = 0
    tasks = (partial(chunk.mine, staging, options.map, options.overlaps) for chunk in chunks)
    for number in run(tasks, workers):
        done += number
        progress("pairs", done, pairs)


def _refuse_too_few(
    photos: dict[int, MinedPhoto], failed: list[tuple[str, str]], source: PhotoSource, options: MiningOptions
) -> None:
    if len(photos) < (1 if options.geometry == "views" else 2) and failed:
        path, reason = failed[0]
        few = "no photo" if options.geometry == "views" else "not two photos"
        raise CairnError(f"{source.name} has {few} that can be read ({path}: {reason}): add some that can.")


def _refuse_too_little(assembly: Assembly, source: PhotoSource, options: MiningOptions, pairs_tried: int) -> None:
    if options.geometry == "views":
        advice = "add photos with more to see, or make more views (cairn mine --views)"
    else:
        advice = (
            "add photos that show the same things, try more pairs (cairn mine --pairs), or learn from views of the "
            "photos (--geometry views)"
        )
    if not assembly.kept:
        what = "a feature that is found again in its view"
        if options.geometry != "views":
            what = f"{options.map.inliers} matches that agree on one map"
        raise TooLittle(f"None of {pairs_tried} image pairs of {source.name} has {what}: {advice}.")
    if assembly.features < options.least:
        raise TooLittle(
            f"Only {assembly.features} features of {len(assembly.kept)} image pairs of {source.name} have a match, and "
            f"learning needs {options.least}: {advice}."
        )


def _leave(folder: Path, work: Path | None) -> None:
    if work is None:
        shutil.rmtree(folder, ignore_errors=True)
