"""Impressions of one block or plate, as `import cairn` gives them: in one frame, compared two by two."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import save_bytes, save_json
from index.attributes import some_of
from index.docstrings import documented
from index.errors import CairnError
from index.messages import said
from index.progress import Progress, silent
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.impressions.frames import (
    AlignedImpression,
    Frame,
    NotComparable,
    ReadPhoto,
    align_impression,
    align_reference,
    frame_around,
    outline_of,
    trim_frame,
)
from retrieval.impressions.pictures import overlay, residual_map
from retrieval.impressions.registration import bend_impression, start_map
from retrieval.impressions.residual import Break, ImpressionResidual, compare_impressions
from retrieval.library.given import row_of
from retrieval.library.matches import Match
from retrieval.library.parts.images import encode_image
from retrieval.metadata.pages import hash_photo, split_page
from retrieval.photos.decoding import read_colour_sized
from retrieval.photos.options import ImageOptions
from retrieval.search.answers import QueryImage

MOST = 24
"""Photos that are compared at once, at most."""
TITLES = {"align": "Aligning (photos)", "compare": "Comparing (pairs)"}
"""Titles of the steps of the progress."""

_READ = 4096  # pixels of the longer side at which photos are read
_TOLD = 50  # breaks whose places `to_dict` has, of each direction
_LIKELY = 0.5  # least probability of a match


@documented
@dataclass(frozen=True, eq=False)
class Impression:
    """A photo of a block or plate, in the frame that all are compared in."""

    name: Annotated[str, "Of the photo."]
    path: Annotated[str, "Its file."]
    number: Annotated[int | None, "Its number in the collection; None of a file that is not in it."]
    inliers: Annotated[int | None, "Matches with the reference that agree on one map; None of the reference itself."]
    homography: Annotated[
        NDArray[np.float64],
        "(3, 3)",
        "Takes pixels of the frame to pixels of the upright original.",
    ] = field(repr=False)
    bend: Annotated[float, "Pixels of the frame by which stretched or curved paper is shifted beyond that, at most."]
    pixels: Annotated[NDArray[np.uint8], "(H, W, 3)", "The photo in the frame, RGB."] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as the command prints it, without its pixels."""
        rows = [[float(f"{value:.9g}") for value in row] for row in self.homography.tolist()]
        return {**some_of(self, "name", "path", "number", "inliers"), "homography": rows, "bend": round(self.bend, 2)}


@documented
@dataclass(frozen=True, eq=False)
class ImpressionPair:
    """What differs between two impressions."""

    first: Annotated[str, "Name of a photo."]
    second: Annotated[str, "Name of another photo."]
    verdict: Annotated[
        str, "``one block``, ``cut alike`` (two blocks, one cut after the other) or ``unsure``: by `displacement`."
    ]
    displacement: Annotated[
        float | None,
        "Widths of a line that a quarter of the lines is displaced by at least, once the paper's stretch "
        "is taken out; None where there are too few lines.",
    ]
    missing: Annotated[
        tuple[float, float],
        "Share of the ink of the first that the second lacks, and of the ink of the second that the first lacks.",
    ]
    line_widths: Annotated[tuple[float, float], "Mean width of the lines of each, pixels of the frame."]
    tolerance: Annotated[float, "Pixels of the frame within which ink counts as there."]
    correlation: Annotated[float, "Of the ink of both, -1 to 1."]
    breaks: Annotated[
        tuple[list[Break], list[Break]],
        "Places where the first alone has ink, and where the second alone has, the largest first: x, y, "
        "width, height and area in pixels of the frame.",
    ] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        rounded = {name: [round(one, 4) for one in getattr(self, name)] for name in ("missing", "line_widths")}
        return {
            **some_of(self, "first", "second", "verdict"),
            "displacement": None if self.displacement is None else round(self.displacement, 4),
            **rounded,
            **{name: round(getattr(self, name), 4) for name in ("tolerance", "correlation")},
            "breaks": [len(some) for some in self.breaks],
            "largest_breaks": [[list(one) for one in some[:_TOLD]] for some in self.breaks],
        }


@documented
@dataclass(frozen=True, eq=False)
class Impressions:
    """Impressions of one block or plate in one frame."""

    box: Annotated[tuple[float, float, float, float], "The frame: x0, y0, x1, y1 in pixels of the reference, upright."]
    size: Annotated[tuple[int, int], "Its width and height in pixels."]
    photos: Annotated[list[Impression], "The reference first."]
    pairs: Annotated[list[ImpressionPair], "Each two of them."]
    left_out: Annotated[list[dict[str, str]], "Name and reason of photos that cannot be compared."]
    _drawn: Callable[[int, int], tuple[AlignedImpression, AlignedImpression, ImpressionResidual]] = field(repr=False)

    def __repr__(self) -> str:
        return f"<{len(self.photos)} impressions, {self.size[0]} × {self.size[1]} pixels>"

    def overlay(self, place: int, below: int = 0) -> NDArray[np.uint8]:
        """Lay one of `photos` over another: vermilion is ink of the one below alone, blue that of the one above.

        Parameters
        ----------
        place, below : int
            In `photos`, from 0, the reference. Two others are registered with each other first.

        Returns
        -------
        ndarray, shape (H, W, 3), uint8
            RGB.
        """
        first, second, _ = self._drawn(below, place)
        return overlay(first, second)

    def residual(self, place: int, below: int = 0) -> NDArray[np.uint8]:
        """Draw what one of `photos` (blue) or another (vermilion) has alone, over what both have.

        Parameters
        ----------
        place, below : int
            See `overlay`.

        Returns
        -------
        ndarray, shape (H, W, 3), uint8
            RGB.
        """
        return residual_map(*self._drawn(below, place))

    def to_dict(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        return {
            "reference": self.photos[0].name,
            "box": list(self.box),
            "size": list(self.size),
            "photos": [one.to_dict() for one in self.photos],
            "pairs": [one.to_dict() for one in self.pairs],
            "left_out": self.left_out,
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write the pictures, all of one size, into a folder, which is made where it is missing.

        ``aligned-1.png`` is the reference in the frame, ``aligned-2.png`` the next of `photos`; ``overlay-2.png`` and
        ``residual-2.png`` are of that and the reference. ``impressions.json`` has what `to_dict` gives.

        Parameters
        ----------
        folder : path-like
            Files of these names in it are replaced.

        Returns
        -------
        list of Path
            What was written.

        Raises
        ------
        CairnError
            It cannot be written there.
        """
        pictures = {f"aligned-{place}.png": one.pixels for place, one in enumerate(self.photos, start=1)}
        for place in range(1, len(self.photos)):
            pictures |= {
                f"overlay-{place + 1}.png": self.overlay(place),
                f"residual-{place + 1}.png": self.residual(place),
            }
        return save_files(folder, pictures, "impressions.json", self.to_dict())


def save_files(
    folder: str | Path, pictures: Mapping[str, NDArray[np.uint8]], name: str, facts: Mapping[str, Any], **others: bytes
) -> list[Path]:
    """Write pictures, JSON of a name and other files into a folder; raises CairnError if it cannot be written there."""
    into = Path(folder)
    try:
        into.mkdir(parents=True, exist_ok=True)
        for file, pixels in pictures.items():
            save_bytes(into / file, encode_image(pixels))
        save_json(into / name, dict(facts))
        for file, content in others.items():
            save_bytes(into / file, content)
    except OSError as error:
        raise CairnError(f"{into} cannot be written ({error.strerror}): choose another folder.") from None
    return [into / file for file in (*pictures, name, *others)]


def rows_beside(collection: Collection, query_image: QueryImage, given: Sequence[Any]) -> list[ImageRow]:
    """Return the photos to compare with a reference, each once; the reference may be among the given photos.

    Raises CairnError if they are too few or too many.
    """
    own = query_image.row.number if query_image.row is not None else None
    rows = {}
    for photo in given:
        if isinstance(photo, (str, os.PathLike)) and query_image.row is None and Path(photo) == query_image.path:
            continue
        row = row_of(collection, photo)
        if row.number != own:
            rows[row.number] = row
    if not rows:
        raise CairnError("Comparing impressions needs at least two photos.")
    if len(rows) >= MOST:
        raise CairnError(
            "Impressions of at most {most} photos can be compared, not {count}.", most=MOST, count=len(rows) + 1
        )
    return list(rows.values())


@dataclass(frozen=True, eq=False)
class AlignedPhotos:
    """Photos in the frame of a reference, which is the first."""

    frame: Frame
    photos: list[Impression]
    aligned: list[AlignedImpression]
    left_out: list[dict[str, str]]  # name and reason of those that cannot be compared


def align_photos(
    query_image: QueryImage,
    rows: Sequence[ImageRow],
    match: Callable[[ImageRow], Match],
    *,
    most_pixels: int,
    checked: bool = False,
    progress: Progress = silent,
) -> AlignedPhotos:
    """Align photos with a reference, which may have a box; `match` matches the reference with one of them.

    `checked` says that the files are known to be those that were indexed. Raises NotComparable if no photo matches.
    """
    options = ImageOptions(max_side=_READ, max_pixels=most_pixels)
    try:
        reference = _read(query_image.path, None, options)  # whoever made the query has looked at its content
    except CairnError as error:
        raise CairnError("{name} cannot be read: {reason}.", name=query_image.name, reason=error) from None
    matched = [(row, found) for row in rows if _agrees(found := match(row))]
    agreeing = {row.number for row, _ in matched}
    left_out = [
        {"name": row.name or "", "reason": f"it does not match {query_image.name}"}
        for row in rows
        if row.number not in agreeing
    ]
    if not matched:
        raise NotComparable(
            "None of the photos matches {name}: choose another {--reference}, or a {--box} in it.",
            name=query_image.name,
        )
    outlines = [outline_of(found.query_ellipses) for _, found in matched]
    frame = frame_around(outlines, reference, query_image.box)
    aligned = [align_reference(frame, reference)]
    selected: list[tuple[ImageRow, int]] = []
    for done, ((row, found), outline) in enumerate(zip(matched, outlines, strict=True), start=1):
        # A box is taken at its word.
        region = aligned[0].region if query_image.box is not None else frame.mask(outline)
        try:
            photo = _read(Path(row.path), None if checked else row.sha256, options)
            aligned.append(_aligned(frame, aligned[0], photo, found, region, narrow=query_image.box is None))
            selected.append((row, found.inliers))
        except CairnError as error:
            left_out.append({"name": row.name or "", "reason": str(error)})
        progress("align", done, len(matched))
    if not selected:
        last = left_out[-1]
        raise NotComparable("{name} cannot be compared: {reason}.", name=last["name"], reason=last["reason"])
    if query_image.box is None:
        frame, aligned = trim_frame(frame, aligned)
    photos = [_impression(query_image.name, str(query_image.path), query_image.row, None, aligned[0])] + [
        _impression(row.name or "", row.path, row, inliers, one)
        for (row, inliers), one in zip(selected, aligned[1:], strict=True)
    ]
    return AlignedPhotos(frame, photos, aligned, left_out)


def compare_aligned(found: AlignedPhotos, tolerance: float | None = None, progress: Progress = silent) -> Impressions:
    """Compare each two impressions; what is drawn is of those with the reference.

    `tolerance`: pixels of the frame within which ink counts as there; see `compare_impressions`.
    """
    photos, aligned = found.photos, found.aligned
    pairs, with_reference = [], dict[int, ImpressionResidual]()
    every = list(combinations(range(len(aligned)), 2))

    def compare(below: int, above: int) -> tuple[AlignedImpression, AlignedImpression, ImpressionResidual]:
        if below == above or not {below, above} <= set(range(len(aligned))):
            raise CairnError(
                "There are no impressions {below} and {above} to lay over each other.", below=below, above=above
            )
        one, other = aligned[below], aligned[above]
        if 0 not in (below, above):
            other = _registered(one, other)
        residual = with_reference.get(above) if below == 0 else None
        if residual is None:
            residual = compare_impressions(one.ink, other.ink, one.region & other.region, tolerance)
        return one, other, residual

    for done, (here, there) in enumerate(every, start=1):
        residual = compare(here, there)[2]
        if here == 0:  # the pictures of it are drawn
            with_reference[there] = residual
        pairs.append(_pair(photos[here].name, photos[there].name, residual))
        progress("compare", done, len(every))
    return Impressions(found.frame.box, found.frame.size, photos, pairs, found.left_out, compare)


def _agrees(found: Match) -> bool:
    return found.homography is not None and found.probability >= _LIKELY


def _aligned(
    frame: Frame,
    reference: AlignedImpression,
    photo: ReadPhoto,
    found: Match,
    region: NDArray[np.bool_],
    *,
    narrow: bool,
) -> AlignedImpression:
    """Take a photo into the frame; raises NotComparable if it does not agree there."""
    assert found.homography is not None
    one = align_impression(frame, reference, photo, found.homography, region, narrow=narrow)
    if one is None:
        raise NotComparable("its ink is not that of the reference")
    return one


def _registered(one: AlignedImpression, other: AlignedImpression) -> AlignedImpression:
    """Register an impression with another one, where both were with the reference alone."""
    region = one.region & other.region
    if not region.any():
        return other
    bend = bend_impression(one.ink, other.ink, start_map(np.eye(3), region.shape[::-1]), region)
    return replace(other, ink=bend.apply(other.ink))


def _pair(first: str, second: str, found: ImpressionResidual) -> ImpressionPair:
    return ImpressionPair(
        first,
        second,
        found.verdict,
        found.displacement_widths,
        found.missing,
        found.line_widths,
        found.tolerance,
        found.correlation,
        (found.breaks(0), found.breaks(1)),
    )


def _impression(
    name: str, path: str, row: ImageRow | None, inliers: int | None, aligned: AlignedImpression
) -> Impression:
    file = str(split_page(path)[0])
    number = row.number if row is not None else None
    return Impression(name, file, number, inliers, aligned.homography, aligned.bend, aligned.pixels)


def _read(path: Path, sha256: str | None, options: ImageOptions) -> ReadPhoto:
    with suppress(OSError):  # reading says why
        if sha256 is not None and hash_photo(path) != sha256:
            raise CairnError(said("its file is no longer the one that was indexed"))
    return ReadPhoto(*read_colour_sized(path, options))
