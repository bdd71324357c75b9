"""Inline SVG drawings of a page of rankings: precision against recall, ranks of positives, a photo's box."""

import math
from collections.abc import Iterable
from html import escape

import numpy as np
from numpy.typing import NDArray

from eval.rankings.curves import RECALLS
from eval.rankings.photos import PreviewPicture

_SIDE, _EDGE = 160, 22  # of the plot, and the space for labels, in pixels
_STRIP = 640


def curve_drawing(curve: NDArray[np.float64], label: str) -> str:
    """Draw interpolated precision (101,) at `RECALLS`."""
    points = " ".join(
        f"{_EDGE + _SIDE * recall:.1f},{6 + _SIDE * (1 - precision):.1f}"
        for recall, precision in zip(RECALLS.tolist(), curve.tolist(), strict=True)
    )
    width, height = _SIDE + _EDGE + 8, _SIDE + _EDGE + 12
    low, middle = 6 + _SIDE, 6 + _SIDE / 2
    return (
        f'<svg class="curve" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<title>{escape(label)}</title>"
        f'<rect class="field" x="{_EDGE}" y="6" width="{_SIDE}" height="{_SIDE}"/>'
        f'<polyline class="line" points="{points}"/>'
        f'<text x="{_EDGE}" y="{low + 12}">0</text>'
        f'<text x="{_EDGE + _SIDE}" y="{low + 12}" text-anchor="end">1</text>'
        f'<text x="{_EDGE + _SIDE / 2}" y="{low + 14}" text-anchor="middle">recall</text>'
        f'<text x="{_EDGE - 4}" y="{low}" text-anchor="end">0</text>'
        f'<text x="{_EDGE - 4}" y="14" text-anchor="end">1</text>'
        f'<text transform="rotate(-90 10 {middle})" x="10" y="{middle}" text-anchor="middle">precision</text>'
        "</svg>"
    )


def strip_drawing(ranks: Iterable[int], length: int, label: str) -> str:
    """Draw ranks from 1 to a ranking's length as marks on a logarithmic line."""
    last = max(length, 2)

    def place(rank: float) -> float:
        return 4 + (_STRIP - 8) * math.log(rank) / math.log(last)

    marks = "".join(
        f'<line class="mark" x1="{place(rank):.1f}" x2="{place(rank):.1f}" y1="2" y2="16"/>' for rank in ranks
    )
    ticks = "".join(
        f'<text x="{place(10**power):.1f}" y="32" text-anchor="{"middle" if power else "start"}">{10**power:,}</text>'
        for power in range(int(math.log10(last)) + 1)
    )
    return (
        f'<svg class="strip" role="img" width="{_STRIP}" height="36" viewBox="0 0 {_STRIP} 36">'
        f"<title>{escape(label)}</title>"
        f'<line class="axis" x1="4" x2="{_STRIP - 4}" y1="18" y2="18"/>{marks}{ticks}</svg>'
    )


def boxed_photo(picture: PreviewPicture, box: tuple[float, float, float, float] | None, side: int, label: str) -> str:
    """Draw a photo with a box, in pixels of the photo itself."""
    width, height = picture.width, picture.height
    scale = side / max(width, height)
    drawn = ""
    if box is not None:
        x0, y0, x1, y1 = box
        drawn = (
            f'<rect class="box" x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" '
            f'stroke-width="{3 / scale:.2f}"/>'
        )
    return (
        f'<svg role="img" width="{width * scale:.0f}" height="{height * scale:.0f}" viewBox="0 0 {width} {height}">'
        f'<title>{escape(label)}</title><image href="{picture.uri}" width="{width}" height="{height}"/>{drawn}</svg>'
    )
