"""Drawing of close-ups, in the colours of Fig. 2 of Simonyan14."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from learning.reports.closeup import Closeup, Crop, ellipse_points
from learning.reports.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"feature": "#1040ff", "positive": "#00d020", "ambiguous": "#ff20ff", "negative": "#ff1818"}
"""Blue, green, magenta, red: as in the paper."""

_LINE = 2.4  # points
_DASHES = (0, (4, 1.6))
_ROOM = 0.09  # between labels, as a part of the window's side
_PLACES = 36  # around an ellipse, where its label can stand


def closeup_figure(closeup: Closeup) -> "Figure":
    """Draw a close-up without names: reference photo with projections on the left, target photo on the right."""
    figure = new_figure(12.5, 7.5)
    left, right = figure.subplots(1, 2)
    _show(left, closeup.reference_crop, "reference photo")
    _show(right, closeup.target_crop, "target photo")
    _outline(left, closeup.region, COLOURS["feature"], "solid")
    labelled: dict[str, list[NDArray[np.float64]]] = {"left": [], "right": []}
    for match in closeup.matches:
        colour, ratio = COLOURS[match.kind], f"{match.overlap:.2f}"
        _outline(left, match.projected, colour, _DASHES)
        _outline(right, match.region, colour, "solid")
        _label(left, match.projected, ratio, colour, closeup.reference_crop, labelled["left"])
        _label(right, match.region, ratio, colour, closeup.target_crop, labelled["right"])
    _legend(figure, closeup)
    return figure


def _show(axes: "Axes", crop: Crop, title: str) -> None:
    x0, x1, bottom, top = crop.window
    axes.imshow(crop.pixels, extent=crop.extent, interpolation="bicubic")
    axes.set(xlim=(x0, x1), ylim=(bottom, top), aspect="equal", xticks=[], yticks=[], facecolor="#dddddd")
    axes.set_title(title, fontsize=15)


def _outline(axes: "Axes", region: NDArray[np.float64], colour: str, style: Any) -> None:
    points = ellipse_points(region)
    points = np.concatenate([points, points[:1]])
    # White underneath, so that lines are visible on any background.
    axes.plot(*points.T, color="white", alpha=0.6, linewidth=2 * _LINE, linestyle="solid")
    axes.plot(*points.T, color=colour, linewidth=_LINE, linestyle=style)


def _label(
    axes: "Axes", region: NDArray[np.float64], text: str, colour: str, crop: Crop, labelled: list[NDArray[np.float64]]
) -> None:
    """Write a text next to an ellipse, where earlier labels leave most room."""
    x0, x1, y1, y0 = crop.window
    side = x1 - x0
    rim = ellipse_points(region, _PLACES)
    away = rim - region[:2]
    places = rim + away / np.linalg.norm(away, axis=1, keepdims=True) * 0.035 * side
    edge = np.minimum(places - (x0, y0), (x1, y1) - places).min(axis=1)
    room = np.min([np.linalg.norm(places - other, axis=1) for other in labelled] or [np.full(_PLACES, side)], axis=0)
    score = np.minimum(room, 2 * _ROOM * side) + 10 * np.minimum(edge - 0.04 * side, 0)
    place = places[int(np.argmax(score))]
    labelled.append(place)
    axes.text(
        float(place[0]),
        float(place[1]),
        text,
        color="white",
        fontsize=13,
        fontweight="bold",
        ha="center",
        va="center",
        bbox={"facecolor": colour, "edgecolor": "white", "boxstyle": "round,pad=0.2", "alpha": 0.9},
    )


def _legend(figure: "Figure", closeup: Closeup) -> None:
    from matplotlib.lines import Line2D

    high, low = closeup.overlaps.high, closeup.overlaps.low
    lines: list[tuple[str, Any, str]] = [
        (COLOURS["feature"], "solid", "the feature: its measurement region"),
        ("#444444", _DASHES, "dashed: projected into the reference photo"),
        (COLOURS["positive"], "solid", f"positive: overlap above {high:g}"),
        (COLOURS["ambiguous"], "solid", f"ambiguous: {low:g} to {high:g}, not learnt from"),
        (COLOURS["negative"], "solid", f"negative: below {low:g}"),
    ]
    handles = [
        Line2D([], [], color=colour, linewidth=_LINE, linestyle=style, label=text) for colour, style, text in lines
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=13, frameon=False)
