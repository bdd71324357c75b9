"""The contracts of extensions, as checks for the tests of their authors.

Each raises AssertionError with the broken condition. Built-in parts pass the same checks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.docstrings import completed
from index.errors import CairnError
from index.extensions import check_contract, register

if TYPE_CHECKING:
    from retrieval.library.collection import Collection

__all__ = [
    "check_descriptor",
    "check_detector",
    "check_engine",
    "check_extractor",
    "check_features",
    "check_global_descriptor",
    "check_protocol",
    "check_verifier",
]

_SHARED = {
    "{raises_broken}": """\
Raises
------
AssertionError
    The contract is not kept; the message says in what.""",
}


@completed(_SHARED)
def check_descriptor(descriptor: Any, *, rough: bool = False) -> None:
    """Check that an object fulfils the contract of descriptors.

    It has ``name``, ``dim``, ``patch_size``, ``extent`` (side of a patch over that of the detector's own regions),
    ``bytes`` (of a stored row) and ``fingerprint``, which differs whenever rows would differ, and
    ``describe(patches)``: from (N, S, S), uint8 or float32, to rows (N, dim) float32, also for N = 0 and for patches
    without contrast. A row depends only on its patch, and hardly on brightness and contrast.

    Parameters
    ----------
    descriptor : object
        With these attributes.
    rough : bool
        Rows are decoded from codes: a few may differ between batches, and a small change of a patch may change much.

    {raises_broken}

    Examples
    --------
    >>> from retrieval.descriptors.registry import find_descriptor
    >>> from retrieval.library.testing import check_descriptor
    >>> check_descriptor(find_descriptor("sift"))
    """
    check_contract("descriptor", descriptor)
    size = descriptor.patch_size
    patches = textures(300, size)
    kept = patches.copy()
    rows = descriptor.describe(patches)
    _expect(rows.shape == (300, descriptor.dim), f"rows have the shape {rows.shape}, and not (300, {descriptor.dim})")
    _expect(rows.dtype == np.float32, f"rows are {rows.dtype}, and not float32")
    _expect(bool(np.isfinite(rows).all()), "rows are not all finite")
    _expect(np.array_equal(patches, kept), "describe() changes the patches that it is given")
    _expect(np.array_equal(descriptor.describe(kept.copy()), rows), "the same patches give other rows the second time")
    alone = np.concatenate([descriptor.describe(patches[row : row + 1]) for row in range(300)])
    for others in (alone, descriptor.describe(patches[::-1])[::-1]):
        # On some processors matrix products of another size round differently.
        differ = int((~np.isclose(rows, others, rtol=1e-7, atol=1e-6).all(axis=1)).sum())
        _expect(differ <= 3 * rough, f"{differ} of 300 rows depend on what else is in the batch")
    others = np.roll(rows, 1, axis=0)
    _expect(bool((rows != others).any(axis=1).all()), "different patches give the same row")
    for gain, offset in ((0.3, 0), (1, 25), (0.5, 100), (1.1, -10)):
        distances = np.linalg.norm(rows - descriptor.describe(gain * patches + np.float32(offset)), axis=1)
        if rough:
            near = (distances**2).mean() < 0.01 * (np.linalg.norm(rows - others, axis=1) ** 2).mean()
        else:
            near = distances.max() < 0.01 * np.linalg.norm(rows, axis=1).min()
        _expect(bool(near), f"rows change where grey values are multiplied by {gain} and {offset} is added")
    rounded = np.rint(patches).astype(np.uint8)
    same = np.array_equal(descriptor.describe(rounded), descriptor.describe(rounded.astype(np.float32)))
    _expect(same, "bytes give other rows than the same numbers as float32")
    for kind in (np.uint8, np.float32):
        none = descriptor.describe(np.zeros((0, size, size), kind))
        _expect(none.shape == (0, descriptor.dim) and none.dtype == np.float32, f"no patches give {none.shape}")
    flat = np.stack([np.full((size, size), value, np.float32) for value in (0, 7.3, 255)])
    _expect(
        bool(np.isfinite(descriptor.describe(flat)).all()), "a patch without contrast gives a row that is not finite"
    )
    for wrong in (patches[0], patches[:, 1:], patches[:, :, :-1], patches[None]):
        _refuses(partial(descriptor.describe, wrong), f"patches of the shape {wrong.shape} are not refused")
    _check_fingerprint(descriptor)


@completed(_SHARED)
def check_detector(detector: Any) -> None:
    """Check that a detector's regions follow the image.

    It is a `retrieval.regions.detectors.contract.Detector`, or has the same attributes: ``respond(octave)`` returns the
    responses of the levels of an octave, whose extrema are the regions.

    Parameters
    ----------
    detector : object

    {raises_broken}

    Examples
    --------
    >>> from retrieval.library.testing import check_detector
    >>> from retrieval.regions.detectors.registry import find_detector
    >>> check_detector(find_detector("hessian-affine"))
    """
    from dataclasses import replace

    from retrieval.regions.detection import detect_regions
    from retrieval.regions.options import RegionOptions

    with _registered("detector", detector) as place:
        options = RegionOptions(detector=place, max_regions=0)
        image = _texture()
        found = detect_regions(image, options)
        _expect(len(found) > 20, f"it finds {len(found)} regions where there is much to be found")
        rows = found.ellipses
        _expect(bool(np.isfinite(rows).all()), "regions are not finite")
        height, width = image.shape
        inside = (rows[:, :2] >= 0).all() and (rows[:, 0] < width).all() and (rows[:, 1] < height).all()
        _expect(bool(inside), "regions lie outside the image")
        _expect(bool((rows[:, 2] * rows[:, 4] > rows[:, 3] ** 2).all()), "regions are no ellipses")
        _expect(bool((np.diff(found.responses) <= 0).all()), "the strongest do not come first")
        again = detect_regions(image.copy(), options)
        _expect(np.array_equal(again.ellipses, rows), "the same image gives other regions the second time")
        mirrored = rows[:, :2] * (-1, 1) + (width - 1, 0)
        for name, moved, expected in (
            ("mirrored", image[:, ::-1], mirrored),
            ("turned by half", image[::-1, ::-1], (width - 1, height - 1) - rows[:, :2]),
            ("transposed", image.T, rows[:, 1::-1]),
        ):
            part = _found_again(expected, detect_regions(np.ascontiguousarray(moved), options).ellipses[:, :2])
            _expect(part > 0.9, f"of its regions {part:.0%} are found again where the image is {name}")
        brighter = detect_regions(20 + 1.2 * image, replace(options, threshold=1.2 * detector.threshold))
        part = _found_again(rows[:, :2], brighter.ellipses[:, :2])
        _expect(part > 0.9, f"of its regions {part:.0%} are found again with more contrast: responses are not linear")
        for flat in (np.full((100, 150), 128, np.float32), np.zeros((64, 64), np.float32)):
            _expect(not len(detect_regions(flat, options)), "it finds regions in an image that shows nothing")


@completed(_SHARED)
def check_engine(engine: Any, collection: "Collection", photo: Any, **options: Any) -> None:
    """Check that an engine fulfils the contract of engines on a collection.

    It is a subclass of `retrieval.search.engines.contract.Engine`: ``score_many(views)`` returns scores (views, photos)
    float32, finite and at least 0, and 0 if a view has nothing in common with a photo; scores depend on no other view
    and no other search. ``verify_many(view, numbers)`` returns the results of ``verify(view, number)``.

    Parameters
    ----------
    engine : type
        The class, or the name of an installed or built-in one.
    collection : Collection
        Open, with a few photos, and all that the engine needs.
    photo : str or path-like
        A photo of it, or another file.
    **options
        Of searches, as for `Collection.search`.

    {raises_broken}
    """
    from dataclasses import replace

    from index.options.declaration import build
    from retrieval.regions.geometry import Frames
    from retrieval.search.answers import find_photo
    from retrieval.search.engines.contract import load_engine
    from retrieval.search.options import SearchOptions
    from retrieval.search.query import QuerySource, extract_query

    with _registered("engine", engine) as name:
        opened, search_options = collection.opened, build(SearchOptions, {**options, "engine": name})
        made = load_engine(name)(opened, search_options)
        source = QuerySource(opened.extractor, opened.options.image, find_photo(opened, str(photo)).path, None)
        first, other = extract_query(opened, source, 4, signed=search_options.signed).views[:2]
        numbers: list[int] = made.index.image_numbers.tolist()
        nowhere, none = Frames(np.zeros((0, 2), np.float32), np.zeros((0, 2, 2), np.float32)), np.zeros(0, np.int32)
        signed = first.signed.at(none) if first.signed is not None else None
        empty = replace(
            first,
            frames=nowhere,
            descriptors=first.descriptors[:0],
            words=none,
            terms=none,
            weights=None,
            signed=signed,
        )
        scores = made.score_many([first])
        _expect(scores.shape == (1, len(numbers)), f"scores have the shape {scores.shape}, and not (1, {len(numbers)})")
        _expect(scores.dtype == np.float32, f"scores are {scores.dtype}, and not float32")
        _expect(bool(np.isfinite(scores).all() and (scores >= 0).all()), "scores are not finite, or less than 0")
        many = made.score_many([other, first, empty])
        _expect(np.array_equal(many[1], scores[0]), "the scores of a view depend on other views or searches")
        again = load_engine(name)(opened, search_options).score_many([first])
        _expect(np.array_equal(again, scores), "another engine of the same class scores otherwise")
        for view in (first, empty):
            alone = [made.verify(view, number) for number in numbers]
            for order in (numbers, numbers[::-1], numbers[:0]):
                for number, found in zip(order, made.verify_many(view, order), strict=True):
                    expected = alone[numbers.index(number)]
                    same = np.array_equal(found.matches, expected.matches) and found.strength == expected.strength
                    _expect(same, "photos that are verified together give others than each alone")
                    _check_verification(found, len(view.words))
            if view is empty:
                _expect(not any(one.inliers for one in alone), "a query without features verifies photos")
        _refuses(lambda: made.verify(first, max(numbers) + 1), "a photo that there is not is verified", KeyError)


@completed(_SHARED)
def check_extractor(extractor: Any) -> None:
    """Check that an object fulfils the contract of extractors.

    It has ``name``, ``dim``, ``geometry`` (``points``, ``scales``, ``oriented``, ``ellipses`` or ``affine``) and
    ``fingerprint``, which differs whenever features would differ, and ``extract(image)``: from an upright image (H, W)
    uint8 of any size, or with ``colour = True`` from RGB (H, W, 3), to a dict of ``keypoints`` (N, 2 to 4: x, y,
    radius, angle in radians), ``frames`` or ``lafs``, of ``descriptors`` (N, dim) and optionally ``scores`` (N,). With
    ``values = "bits"`` descriptors are packed bits; with ``"bytes"`` or ``"as-they-are"`` they are not normalised to
    unit length.

    Parameters
    ----------
    extractor : object

    {raises_broken}
    """
    from retrieval.foreign.computed import extracted, extracted_by
    from retrieval.foreign.converting import features_of, placed
    from retrieval.regions.detectors.registry import FOREIGN

    check_contract("extractor", extractor)
    _check_fingerprint(extractor)
    copy = deepcopy(extractor)  # it is sent to worker processes
    with _registered("extractor", extractor) as place:
        descriptor, options = extracted_by(place)
        _expect(options.extractor_fingerprint == extractor.fingerprint, "its fingerprint changes")

    def features(image: NDArray[Any], by: Any = extractor) -> Any:
        pixels = np.rint(image).astype(np.uint8)
        height, width = pixels.shape
        pixels = np.dstack([pixels] * 3) if getattr(extractor, "colour", False) else pixels
        kept = pixels.copy()
        try:
            entry = placed(extracted(by, pixels), width, height)
            found = features_of(entry, descriptor, f"{FOREIGN}{extractor.geometry}", width, height)
        except CairnError as error:
            raise AssertionError(f"of an image of {width} by {height} pixels, {error}") from error
        _expect(np.array_equal(pixels, kept), "extract() changes the image that it is given")
        return found

    image = _texture()
    found = features(image)
    _expect(len(found) > 0, "it finds nothing where there is much to be found")
    for by in (extractor, copy):
        again = features(image, by)
        same = np.array_equal(again.ellipses, found.ellipses) and np.array_equal(again.descriptors, found.descriptors)
        _expect(same, "the same image gives other features the second time, or by a copy of the extractor")
    moved = features(image[32:, 64:]).ellipses[:, :2] + (64, 32)
    kept = found.ellipses[(found.ellipses[:, 0] > 96) & (found.ellipses[:, 1] > 64), :2]
    part = _found_again(kept, moved) if len(kept) else 1.0
    _expect(part >= 0.5, f"of its keypoints {part:.0%} are found again where the image is cut at the left and above")
    for shape in ((97, 61), (16, 16), (1, 1)):
        features(image[: shape[0], : shape[1]])
    features(np.full((64, 64), 128.0))


@completed(_SHARED)
def check_global_descriptor(descriptor: Any) -> None:
    """Check that an object describes images as a whole as Cairn asks of a global descriptor.

    It has ``name``, ``dim`` and ``fingerprint``, which is another one whenever rows would be others, and
    ``describe(image)``: from an upright RGB image (H, W, 3) uint8 of any size to ``dim`` finite numbers, which are
    compared by their angle. It may have ``describe_words(text)``, which gives such a row of a text.

    Parameters
    ----------
    descriptor : object

    {raises_broken}
    """
    from retrieval.foreign.global_descriptors import KIND, row_by

    check_contract(KIND, descriptor)
    _check_fingerprint(descriptor)

    def row(image: NDArray[np.uint8], by: Any = descriptor) -> NDArray[np.float32]:
        kept = image.copy()
        try:
            found = row_by(by, image)
        except CairnError as error:
            raise AssertionError(f"of an image of {image.shape[1]} by {image.shape[0]} pixels, {error}") from error
        _expect(np.array_equal(image, kept), "describe() changes the image that it is given")
        return found

    grey = np.rint(_texture()).astype(np.uint8)
    image = np.ascontiguousarray(np.dstack([grey, grey // 2, 255 - grey]))
    found = row(image)
    _expect(bool(found.any()), "an image with much in it has a row of zeros")
    for by in (descriptor, deepcopy(descriptor)):  # worker processes get a copy
        _expect(np.array_equal(row(image, by), found), "the same image gives another row the second time, or by a copy")
    near, other = (row(np.ascontiguousarray(one)) for one in (image[2:-2, 2:-2], 255 - image[::2, ::3]))
    _expect(float(found @ near) > float(found @ other), "an image is less like its middle than its negative")
    for shape in ((97, 61), (16, 16), (1, 1)):
        row(np.ascontiguousarray(image[: shape[0], : shape[1]]))
    if hasattr(descriptor, "describe_words"):
        said = [row_by(descriptor, text) for text in ("a red door", "a red door", "")]
        _expect(np.array_equal(said[0], said[1]), "the same words have another row the second time")


def _check_recognises(kind: str, form: Any, path: Path) -> None:
    check_contract(kind, form)
    _expect(form.recognises(path) is True, f"recognises({path}) is not True")
    _expect(not form.recognises(path.with_name("no such file")), "what is not there is recognised")


@completed(_SHARED)
def check_features(form: Any, path: Path, photo: Path) -> None:
    """Check that a format of features reads those of a photo.

    ``recognises(path)`` returns whether a file or folder is of the format, without reading all of it; ``open(path)``
    returns an object with ``path`` and ``entry(photo, names)``, which returns an `Entry` of
    `retrieval.foreign.contract`: the keypoints and descriptors of a photo, listed under one of several names, the
    longest first.

    Parameters
    ----------
    form : object
    path : Path
        A file of the format, which has features of the photo.
    photo : Path
        The end of its path is its name in the file.

    {raises_broken}
    """
    from retrieval.foreign.contract import GEOMETRIES, names_of

    _check_recognises("features", form, Path(path))
    source = deepcopy(form.open(Path(path)))  # it is sent to other processes
    _expect(Path(source.path) == Path(path), "open(path).path is another")
    entry = source.entry(photo, list(names_of(photo, [photo.parent])))
    count = len(entry.centres)
    _expect(entry.geometry in GEOMETRIES, f"the geometry {entry.geometry!r} is not one of {', '.join(GEOMETRIES)}")
    _expect(entry.centres.shape == (count, 2), f"centres have the shape {entry.centres.shape}")
    known = entry.linear is None or entry.linear.shape == (count, 2, 2)
    _expect(known, "linear is neither None nor of the shape (N, 2, 2)")
    _expect(len(entry.descriptors) == count, f"there are {len(entry.descriptors)} descriptors of {count} keypoints")
    _expect(bool(np.isfinite(entry.centres).all()), "centres are not finite")


@completed(_SHARED)
def check_protocol(protocol: Any, path: Path) -> None:
    """Check that an evaluation protocol reads a ground truth.

    ``recognises(path)`` returns whether a file or folder is of its form, and ``read(path)`` returns a dict: by a
    query's name a dict with ``photo`` (the name of its file without the extension), optionally ``box`` (x0, y0, x1, y1
    in pixels), and lists of such names ``good``, ``ok`` (also relevant) and ``junk`` (ignored).

    Parameters
    ----------
    protocol : object
    path : Path
        A ground truth of its form.

    {raises_broken}
    """
    _check_recognises("protocol", protocol, Path(path))
    queries = protocol.read(Path(path))
    _expect(bool(queries), "it reads no queries")
    for name, query in queries.items():
        _expect(isinstance(query.get("photo"), str), f"the query {name!r} has no photo")
        _expect(query.get("box") is None or np.shape(query["box"]) == (4,), f"the box of {name!r} is not four numbers")
        sets = [set(query.get(key, ())) for key in ("good", "ok", "junk")]
        _expect(all(isinstance(one, str) for each in sets for one in each), f"{name!r} has names that are no text")
        _expect(not (sets[0] | sets[1]) & sets[2], f"a photo is junk of {name!r} and to be found by it")


@completed(_SHARED)
def check_verifier(verifier: Any, photos: Any = None) -> None:
    """Check that an object fulfils the contract of verifiers.

    ``verify(query, photo)`` takes the features of two photos, each with ``points`` (N, 2), ``frames`` (N, 2, 2),
    ``regions`` (N, 5), ``words`` (N,), ``shape`` (height, width) and, if the verifier has ``needs_descriptors = True``,
    ``descriptors`` (N, D). It returns None, or an object with ``inliers`` (M, 2), ``transform`` (2, 3), from pixels of
    the query to those of the photo, and optionally ``log_odds``, like `cairn.verify`.

    Parameters
    ----------
    verifier : object
    photos : tuple of three, optional
        Inputs of a verifier: features of a query, of a photo that shows the same, and of another photo. By default they
        are synthetic, with random descriptors, which a trained network may reject.

    {raises_broken}
    """
    from retrieval.matching.verification import VerificationOptions
    from retrieval.matching.verifiers import VerifierInput, verification_of

    check_contract("verifier", verifier)
    query, same, other = photos or _made_up(VerifierInput)
    none = VerifierInput(
        query.points[:0],
        query.frames[:0],
        query.words[:0],
        query.descriptors[:0] if query.descriptors is not None else None,
        query.shape,
        query.detector,
    )
    options = VerificationOptions()
    try:
        found, again = (verification_of(verifier, query, same, options) for _ in range(2))
        different = verification_of(verifier, query, other, options)
        pairs = ((query, none), (none, query), (none, none))
        empty = [verification_of(verifier, one, another, options) for one, another in pairs]
    except CairnError as error:
        raise AssertionError(str(error)) from error
    _expect(found.inliers > 0, "it does not verify two photos of the same")
    _expect(np.array_equal(found.matches, again.matches), "the same photos give other matches the second time")
    _check_verification(found, len(query.points))
    _expect(different.inliers < found.inliers / 4, f"it gives {different.inliers} matches of photos that differ")
    _expect(not any(one.inliers for one in empty), "it verifies a photo without features")
    if photos is None and found.transform is not None:
        middle = found.transform @ (0.5, 0.5 * query.shape[0] / query.shape[1], 1)
        expected = np.array(_MOVED) @ (0.5, 0.5 * query.shape[0] / query.shape[1], 1)
        _expect(bool(np.abs(middle - expected).max() < 0.01), "its map is not that of the photos, or not in pixels")


_MOVED = ((0.8, -0.1, 0.1), (0.1, 0.8, 0.02))  # in units of the longer sides


def _made_up(kind: Any) -> tuple[Any, Any, Any]:
    """Synthetic features of a query, of a photo that shows half of them under `_MOVED`, and of another photo."""
    drawn, shape, count = np.random.default_rng(0), (480, 640), 400
    rows = drawn.normal(size=(3, count, 64))
    rows = (rows / np.linalg.norm(rows, axis=2, keepdims=True)).astype(np.float16)
    points = drawn.uniform((0, 0), (640, 480), (3, count, 2))
    frames = drawn.uniform(6, 30, (3, count, 1, 1)) * np.eye(2)
    words = np.arange(3 * count).reshape(3, count)
    linear, half = np.array(_MOVED)[:, :2], slice(0, count // 2)
    points[1, half] = (points[0, half] + 0.5) @ linear.T + 640 * np.array(_MOVED)[:, 2] - 0.5
    frames[1, half] = linear @ frames[0, half]
    rows[1, half], words[1, half] = rows[0, half], words[0, half]
    first, second, third = (
        kind(points[n].astype(np.float32), frames[n].astype(np.float32), words[n].astype(np.int32), rows[n], shape)
        for n in range(3)
    )
    return first, second, third


def textures(
    number: int, size: int, seed: int = 0, sigma: float = 2, low: float = 20, high: float = 230
) -> NDArray[np.float32]:
    """Patches (N, S, S) float32 of smooth texture, grey values from low to high."""
    from scipy import ndimage

    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(number, size, size)), (0, sigma, sigma))
    noise -= noise.min(axis=(1, 2), keepdims=True)
    return np.asarray(low + (high - low) * noise / noise.max(axis=(1, 2), keepdims=True), np.float32)


def _texture() -> NDArray[np.float32]:
    """An image (240, 320) of blobs of several sizes and both signs."""
    from scipy import ndimage

    drawn = np.random.default_rng(0)
    image = sum(
        sigma * ndimage.gaussian_filter(drawn.normal(size=(240, 320)), sigma) * weight
        for sigma, weight in ((1.5, 60), (3, 90), (6, 90), (12, 60))
    )
    return np.asarray(np.clip(128 + image, 0, 255), np.float32)


def _found_again(points: NDArray[Any], others: NDArray[Any]) -> float:
    """Part of the points (N, 2) with another point within a pixel."""
    from scipy.spatial import cKDTree

    return float((cKDTree(others).query(points)[0] < 1).mean()) if len(others) else 0.0


def _check_verification(found: Any, features: int) -> None:
    for side in (0, 1):
        _expect(len(np.unique(found.matches[:, side])) == found.inliers, "a feature is in two matches")
    _expect(not found.inliers or int(found.matches[:, 0].max()) < features, "a match is of no feature of the query")
    _expect((found.transform is None) == (not found.inliers), "there are matches without a map, or a map without any")
    _expect(found.transform is None or found.transform.shape == (2, 3), "a map is not of the shape (2, 3)")


def _check_fingerprint(extension: Any) -> None:
    mark = extension.fingerprint
    _expect(isinstance(mark, str) and bool(mark), "the fingerprint is no text")
    _expect(deepcopy(extension).fingerprint == mark, "a copy of it has another fingerprint")


@contextmanager
def _registered(kind: str, extension: Any) -> Iterator[str]:
    """Let options name an object during a check."""
    from index import extensions

    if isinstance(extension, str):
        yield extension
        return
    before = dict(extensions._registered[kind])
    try:
        yield register(kind, extension)
    finally:
        extensions._registered[kind] = before


def _refuses(call: Callable[[], Any], otherwise: str, error: type[Exception] = ValueError) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(otherwise)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
