"""Results as self-contained HTML: no script, no other files; text has the colours of the surrounding page."""

import base64
from collections.abc import Iterable, Sequence, Sized
from html import escape
from itertools import islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.library.display.drawing import (
    OUTLINE,
    DrawnPhoto,
    box_corners,
    ellipse_axes,
    fitted,
    hues,
    side_by_side,
    some_rows,
)
from retrieval.library.display.pictures import (
    Box,
    MatchPicture,
    Picture,
    ResultPicture,
    ShownPhoto,
    counted,
    picture_of,
    strength,
)
from retrieval.photos.thumbnails import encode_jpeg

MOST = 20
"""Photos that are shown, at most."""

_HIGH, _WIDE, _NARROW = 120, 210, 110  # height of a tile's photo, its largest width, and the tile's least, CSS pixels
_PAIR = 420  # longer side of each of two photos
_PAIR_PIXELS = 640
_GAP = 14
_LINES = 60  # matches that are drawn, at most
_FONT = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.4"
_GREY = "rgba(128,128,128,.25)"


class PhotoList(Sized, Iterable[ShownPhoto], Protocol):
    """Photos of a collection, such as a list of them."""


def answer_html(
    results: Sequence[ResultPicture],
    queries: Sequence[Picture],
    boxes: Sequence[Box | None] = (),
    *,
    seconds: float | None = None,
    most: int = MOST,
) -> str:
    """Show an answer: the queries with their boxes, and at most `most` photos, each with the outline of the query.

    A photo whose file is missing is a grey tile.

    >>> import numpy as np
    >>> from retrieval.library.display.markup import answer_html
    >>> from retrieval.library.display.pictures import Picture
    >>> print(answer_html([], [Picture("black", 8, 8, pixels=np.zeros((8, 8)))])[:4])
    <div
    """
    sure = sum(result.found for result in results)
    perhaps = len(results) - sure
    said = (
        f"{counted(sure, 'photo')} {'shows' if sure == 1 else 'show'} this" if sure else "No photo shows this for sure"
    )
    if not results:
        said = "No photo shows this"
    elif perhaps:
        said += f", {perhaps:,} more perhaps" if sure else f", {perhaps:,} perhaps"
    if seconds is not None:
        said += f" ({seconds:.2f} s)"
    known = [*boxes, *[None] * len(queries)]
    tiles = [
        _tile(query, box_corners(box) if box is not None else None, f"query {query.label}", ["query"], strong=True)
        for query, box in zip(queries, known, strict=False)
    ]
    for result in results[:most]:
        picture, caption = picture_of(result), strength(result)
        notes = [caption, counted(result.inliers, "inlier") if result.inliers else "not verified"]
        if len(queries) > 1:
            notes.append(f"by query {result.query_index + 1}")
        region = np.asarray(result.region, np.float64) if result.region else None
        alt = f"{picture.label}, {caption}" + ("; what was found is outlined" if region is not None else "")
        tiles.append(_tile(picture, region, alt, notes, number=result.rank))
    return _page(said, tiles, len(results) - most)


def photos_html(photos: PhotoList, said: str | None = None, *, most: int = MOST) -> str:
    """Show at most `most` photos of a collection, and access no others, below a text: by default their number."""
    tiles = []
    for photo in islice(photos, most):
        picture = picture_of(photo)
        size = f"{picture.width} × {picture.height}" if picture.width and picture.height else "size not known"
        tiles.append(_tile(picture, None, picture.label, [size]))
    return _page(counted(len(photos), "photo") if said is None else said, tiles, len(photos) - most)


def match_html(match: MatchPicture, query: Picture, photo: Picture, box: Box | None = None) -> str:
    """Show the match of two photos: both side by side, matched regions in equal colours, joined by lines."""
    left, right, width, height = side_by_side(query, photo, _PAIR, _GAP)
    parts = [_image(query, left), _image(photo, right)]
    if box is not None:
        parts.append(_outline(left.place(box_corners(box))))
    if match.region:
        parts.append(_outline(right.place(np.asarray(match.region, np.float64))))
    parts += _matches(match, left, right)
    said = said_of(match)
    label = f"{query.label} next to {photo.label}. {said}" + (
        " What was found is outlined; lines join what matches." if match.inliers else ""
    )
    names = "".join(
        f'<div style="width:{100 * part:.2f}%;{_CUT}">{escape(name)}</div>'
        for name, part in ((query.label, (left.width + _GAP) / width), (photo.label, right.width / width))
    )
    return (
        f'<div style="{_FONT};max-width:{width:.0f}px"><div style="margin:.3em 0 .6em"><b>{escape(said)}</b></div>'
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'style="display:block;width:100%;height:auto" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
        f'<div style="display:flex;opacity:.75;margin:.3em 0">{names}</div></div>'
    )


def said_of(match: MatchPicture) -> str:
    """Describe the match of two photos in a sentence."""
    if not match.inliers and not match.found:
        return f"Nothing confirms that these photos show the same: {strength(match)}."
    return f"These photos show the same: {strength(match)}, {counted(match.inliers, 'inlier')}."


_CUT = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


def _page(said: str, tiles: list[str], more: int) -> str:
    rest = f'<div style="align-self:center;opacity:.75">and {more:,} more</div>' if more > 0 else ""
    return (
        f'<div style="{_FONT}"><div style="margin:.3em 0 .6em"><b>{escape(said)}</b></div>'
        f'<div style="display:flex;flex-wrap:wrap;gap:{_GAP}px;align-items:flex-start">{"".join(tiles)}{rest}</div>'
        "</div>"
    )


def _tile(
    picture: Picture,
    region: NDArray[np.float64] | None,
    alt: str,
    notes: Sequence[str],
    *,
    number: int | None = None,
    strong: bool = False,
) -> str:
    """One photo with its name and notes, and a region of it outlined."""
    width, height = fitted(picture, _WIDE, _HIGH)
    inner = _thumbnail(picture, alt, width, height)
    if region is not None:
        placed = DrawnPhoto(0, 0, width, height, (width / picture.size[0], height / picture.size[1]))
        inner += (
            f'<svg aria-hidden="true" viewBox="0 0 {width:.1f} {height:.1f}" preserveAspectRatio="none" style="'
            f'position:absolute;left:0;top:0;width:100%;height:100%;overflow:visible" xmlns="http://www.w3.org/2000/svg">'
            f"{_outline(placed.place(region))}</svg>"
        )
    border = "outline:2px solid currentColor;outline-offset:2px;" if strong else ""
    name = f"{number}. {picture.label}" if number is not None else picture.label
    lines = "".join(f'<div style="opacity:.75;{_CUT}">{escape(note)}</div>' for note in notes)
    return (
        f'<div style="width:{max(width, _NARROW):.0f}px">'
        f'<div style="height:{_HIGH}px;display:flex;align-items:flex-end">'
        f'<div style="position:relative;{border}width:{width:.0f}px;height:{height:.0f}px">{inner}</div></div>'
        f'<div style="margin-top:.4em;{_CUT}" title="{escape(picture.label)}">{escape(name)}</div>{lines}</div>'
    )


def _thumbnail(picture: Picture, alt: str, width: float, height: float) -> str:
    """A photo as an inline image; a grey tile if it cannot be displayed."""
    try:
        source = _data(picture.tile())
    except CairnError as error:
        return (
            f'<div role="img" aria-label="{escape(alt)}, which cannot be shown: {escape(str(error))}" '
            f'style="width:100%;height:100%;background:{_GREY};display:flex;align-items:center;justify-content:center;'
            f'text-align:center;overflow:hidden"><span style="opacity:.75;font-size:11px;padding:4px">'
            f"{escape(str(error))}</span></div>"
        )
    size = f"width:{width:.0f}px;height:{height:.0f}px;max-width:none"
    return f'<img src="{source}" alt="{escape(alt)}" style="display:block;margin:0;{size}">'


def _image(picture: Picture, placed: DrawnPhoto) -> str:
    """A photo in a drawing; a grey area if it cannot be displayed."""
    place = f'x="{placed.x:.1f}" y="{placed.y:.1f}" width="{placed.width:.1f}" height="{placed.height:.1f}"'
    try:
        return (
            f'<image {place} preserveAspectRatio="none" href="{_data(encode_jpeg(picture.thumbnail(_PAIR_PIXELS)))}"/>'
        )
    except CairnError as error:
        x, y = placed.x + placed.width / 2, placed.y + placed.height / 2
        return (
            f'<rect {place} fill="{_GREY}"/><text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="12" '
            f'fill="currentColor" opacity=".75">{escape(str(error))}</text>'
        )


def _data(jpeg: bytes) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")


def _outline(corners: NDArray[np.float64]) -> str:
    """A polygon that is seen on bright and on dark photos."""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners.tolist())
    return "".join(
        f'<polygon points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'
        for colour, width in (("#fff", 4), (OUTLINE, 2))
    )


def _matches(match: MatchPicture, left: DrawnPhoto, right: DrawnPhoto) -> list[str]:
    """Matched regions of both photos and the lines between them."""
    rows = some_rows(min(len(match.query_ellipses), len(match.photo_ellipses)), _LINES)
    one = ellipse_axes(match.query_ellipses[rows], left)
    other = ellipse_axes(match.photo_ellipses[rows], right)
    parts = []
    for place, colour in enumerate(hues(len(rows))):
        ends = []
        for centres, halves, angles in (one, other):
            (x, y), (longer, shorter) = centres[place].tolist(), halves[place].tolist()
            ends.append((x, y))
            parts.append(
                f'<ellipse rx="{longer:.1f}" ry="{shorter:.1f}" transform="translate({x:.1f} {y:.1f}) '
                f'rotate({angles[place]:.1f})" fill="none" stroke="{colour}" stroke-width="1.3"/>'
            )
        (x0, y0), (x1, y1) = ends
        parts.append(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{colour}" stroke-width="1" '
            'opacity=".75"/>'
        )
    return parts
