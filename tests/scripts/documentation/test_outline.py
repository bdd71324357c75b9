"""The outline of the map, of two countries that are made up."""

import json

import numpy as np

from scripts.documentation.outline import OUT, SCALE, SOURCE, outline


def points(line: list[int]) -> list[list[float]]:
    """Longitudes and latitudes of a line as it is written."""
    return (np.cumsum(np.array(line).reshape(-1, 2), axis=0) / SCALE).tolist()


def test_arcs_of_two_countries_are_a_border_and_coasts_go_on_beyond_180_degrees() -> None:
    # Two squares of ten degrees, side by side, whose common side lies at 178 degrees; and a rock in the sea.
    arcs = [
        [[178, 0], [0, 10]],  # the border
        [[178, 10], [-10, 0], [0, -10], [10, 0]],
        [[178, 0], [2, 0], [-352, 0], [0, 10], [352, 0], [-2, 0]],
        [[50, 50], [0, 0.01], [0.01, 0], [-0.01, -0.01]],
    ]
    countries = [
        {"type": "Polygon", "arcs": [[0, 1]]},
        {"type": "MultiPolygon", "arcs": [[[2, ~0]], [[3]]]},
    ]
    transform = {"scale": [1, 1], "translate": [0, 0]}
    made = outline({"arcs": arcs, "transform": transform, "objects": {"countries": {"geometries": countries}}})
    (border,), (coast,) = made["borders"], made["land"]
    assert points(border) == [[178, 0], [178, 10]]
    assert {tuple(point) for point in points(coast)} >= {(168, 0), (168, 10), (188, 0), (188, 10)}


def test_what_is_shipped_was_made_so() -> None:
    there = json.loads(OUT.read_text(encoding="utf-8"))
    assert (there["source"], there["scale"]) == (SOURCE, SCALE) and len(there["land"]) > 500
    assert OUT.stat().st_size < 100_000
