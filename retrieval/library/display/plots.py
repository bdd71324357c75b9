"""Results as figures by the optional matplotlib."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.extras import require_matplotlib
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
from retrieval.library.display.pictures import Box, MatchPicture, Picture, ResultPicture, picture_of, strength

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = 512  # pixels of a photo's longer side, and units of a drawing
_GAP = 16
_EDGE = 6  # around a drawing
_LINES = 60
_NAME = 24  # characters of a name that a tile has room for


def plot_match(
    match: MatchPicture, query: Picture, photo: Picture, box: Box | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the match of two photos: both side by side, matched regions in equal colours, joined by lines.

    By default in a new figure. A photo that cannot be read is a grey area.
    """
    require_matplotlib()
    from matplotlib.collections import EllipseCollection, LineCollection

    left, right, width, height = side_by_side(query, photo, _SIDE, _GAP)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(10, max(1.5, 10 * height / width + 0.4)), layout="constrained")
    for picture, placed in ((query, left), (photo, right)):
        _draw_photo(ax, picture, placed)
    rows = some_rows(min(len(match.query_ellipses), len(match.photo_ellipses)), _LINES)
    colours = hues(len(rows))
    ends = []
    for ellipses, placed in ((match.query_ellipses, left), (match.photo_ellipses, right)):
        centres, halves, angles = ellipse_axes(ellipses[rows], placed)
        ends.append(centres)
        ax.add_collection(
            EllipseCollection(
                2 * halves[:, 0],
                2 * halves[:, 1],
                angles,
                units="xy",
                offsets=centres,
                transOffset=ax.transData,
                facecolors="none",
                edgecolors=colours,
                linewidths=1,
            )
        )
    ax.add_collection(LineCollection(list(np.stack(ends, axis=1)), colors=colours, linewidths=0.7, alpha=0.75))
    if box is not None:
        _draw_outline(ax, left.place(box_corners(box)))
    if match.region:
        _draw_outline(ax, right.place(np.asarray(match.region, np.float64)))
    _frame(ax, width, height)
    ax.set_axis_off()
    ax.set_title(
        f"{_short(query.label, 40)}  ·  {_short(photo.label, 40)}\n{strength(match)}, {match.inliers} inliers",
        fontsize="medium",
        parse_math=False,
    )
    return ax


def plot_answer(
    results: Sequence[ResultPicture],
    queries: Sequence[Picture],
    boxes: Sequence[Box | None] = (),
    *,
    most: int = 20,
    columns: int = 5,
) -> "list[Axes]":
    """Draw an answer as a grid: the queries first, then at most `most` photos, the best first; return the axes of the
    tiles.

    The last tile shows the number of other photos.
    """
    require_matplotlib()
    if most < 1 or columns < 1:
        raise CairnError("A figure has at least one photo and one column.")
    import matplotlib.pyplot as plt

    known = [*boxes, *[None] * len(queries)]
    tiles = [
        (query, box_corners(box) if box is not None else None, f"query\n{_short(query.label)}")
        for query, box in zip(queries, known, strict=False)
    ]
    for result in results[:most]:
        picture = picture_of(result)
        region = np.asarray(result.region, np.float64) if result.region else None
        tiles.append((picture, region, f"{result.rank}. {_short(picture.label)}\n{strength(result)}"))
    if not tiles:
        raise CairnError("There is nothing to draw.")
    columns = min(columns, len(tiles))
    rows = -(-len(tiles) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(2.3 * columns, 2.6 * rows), layout="constrained", squeeze=False)
    axes: list[Axes] = grid.ravel().tolist()
    for ax in axes:
        ax.set_axis_off()
    for ax, (picture, region, title) in zip(axes, tiles, strict=False):
        width, height = fitted(picture, _SIDE, _SIDE)
        placed = DrawnPhoto(0, 0, width, height, (width / picture.size[0], height / picture.size[1]))
        _draw_photo(ax, picture, placed)
        if region is not None:
            _draw_outline(ax, placed.place(region))
        _frame(ax, width, height)
        ax.set_title(title, fontsize="small", parse_math=False)
    if len(results) > most:
        figure.supxlabel(f"and {len(results) - most:,} more", fontsize="small")
    return axes[: len(tiles)]


def _frame(ax: "Axes", width: float, height: float) -> None:
    """Show a drawing, and a little around it: an outline along its border would be cut off."""
    ax.set(xlim=(-_EDGE, width + _EDGE), ylim=(height + _EDGE, -_EDGE), aspect="equal")


def _draw_photo(ax: "Axes", picture: Picture, placed: DrawnPhoto) -> None:
    """Draw a photo at its place; if it cannot be read, a grey area with the reason."""
    x, y, right, bottom = placed.x, placed.y, placed.x + placed.width, placed.y + placed.height
    try:
        ax.imshow(picture.thumbnail(_SIDE), extent=(x, right, bottom, y), interpolation="antialiased")
    except CairnError as error:
        from matplotlib.patches import Rectangle

        ax.add_patch(Rectangle((x, y), placed.width, placed.height, facecolor="#cccccc", edgecolor="none"))
        middle = (x + right) / 2, (y + bottom) / 2
        ax.text(*middle, str(error), ha="center", va="center", color="#444444", wrap=True, parse_math=False)


def _draw_outline(ax: "Axes", corners: NDArray[np.float64]) -> None:
    """Draw a polygon that is seen on bright and on dark photos."""
    from matplotlib.patches import Polygon

    for colour, width in (("white", 3.2), (OUTLINE, 1.6)):
        ax.add_patch(Polygon(corners, closed=True, fill=False, edgecolor=colour, linewidth=width, joinstyle="round"))


def _short(name: str, most: int = _NAME) -> str:
    """The end of a name, which distinguishes photos of one folder."""
    return name if len(name) <= most else f"…{name[1 - most :]}"
