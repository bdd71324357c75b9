"""Distances on the sphere, and boxes that hold all that is near."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.metadata.places import EARTH_RADIUS, Near, great_circle_km

LATITUDES, LONGITUDES = st.floats(-90, 90), st.floats(-180, 180)


def _by_vectors(first: tuple[float, float], second: tuple[float, float]) -> float:
    """The same distance by the angle between unit vectors."""
    vectors = []
    for latitude, longitude in (first, second):
        phi, theta = math.radians(latitude), math.radians(longitude)
        vectors.append([math.cos(phi) * math.cos(theta), math.cos(phi) * math.sin(theta), math.sin(phi)])
    cross, dot = np.linalg.norm(np.cross(*vectors)), np.dot(*vectors)
    return EARTH_RADIUS * math.atan2(float(cross), float(dot))


@given(LATITUDES, LONGITUDES, LATITUDES, LONGITUDES)
def test_distances_are_those_of_unit_vectors(a: float, b: float, c: float, d: float) -> None:
    # The haversine loses figures between antipodes: a metre at most.
    assert great_circle_km(a, b, c, d) == pytest.approx(_by_vectors((a, b), (c, d)), abs=1e-3)
    assert great_circle_km(a, b, c, d) == pytest.approx(great_circle_km(c, d, a, b), abs=1e-3)


def test_known_distances() -> None:
    assert great_circle_km(0, 0, 0, 1) == pytest.approx(2 * math.pi * EARTH_RADIUS / 360)
    assert great_circle_km(90, 17, -90, 99) == pytest.approx(math.pi * EARTH_RADIUS)
    assert great_circle_km(52.5163, 13.3777, 48.8584, 2.2945) == pytest.approx(878, rel=0.005)  # Berlin to Paris
    assert great_circle_km(0, 179.9, 0, -179.9) == pytest.approx(0.2 * 2 * math.pi * EARTH_RADIUS / 360)


def _inside(near: Near, latitude: float, longitude: float) -> bool:
    south, north = near.latitudes
    return south <= latitude <= north and any(west <= longitude <= east for west, east in near.longitudes)


@given(LATITUDES, LONGITUDES, st.floats(0.001, 25_000), st.floats(0, 1), st.floats(0, 2 * math.pi))
@example(0, 179.99, 50, 1, math.pi / 2)
@example(-89.9, 10, 30, 1, math.pi)
@example(60, 0, 5000, 1, 1.0)
def test_all_that_is_near_is_in_the_box(
    latitude: float, longitude: float, kilometres: float, share: float, bearing: float
) -> None:
    near = Near(latitude, longitude, kilometres)
    angle, phi = share * kilometres / EARTH_RADIUS, math.radians(latitude)
    # Where one comes to who goes that far in that direction.
    sine = math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(bearing)
    there = math.asin(max(-1.0, min(1.0, sine)))
    turn = math.atan2(math.sin(bearing) * math.sin(angle) * math.cos(phi), math.cos(angle) - math.sin(phi) * sine)
    across = (longitude + math.degrees(turn) + 180) % 360 - 180
    assert _inside(near, math.degrees(there), across)
    assert all(-180 <= west <= east <= 180 for west, east in near.longitudes)


def test_a_box_is_no_larger_than_it_must_be() -> None:
    near = Near(48.8584, 2.2945, 10)
    (west, east), (south, north) = *near.longitudes, near.latitudes
    assert (north - south, east - west) == pytest.approx((0.1799, 0.2734), abs=1e-3)
    assert Near(0, 179.99, 10).longitudes == [
        (pytest.approx(179.9, abs=0.01), 180),
        (-180, pytest.approx(-179.92, abs=0.01)),
    ]


@pytest.mark.parametrize(
    "wrong", [(91, 0, 1), (0, 181, 1), (float("nan"), 0, 1), (0, 0, 0), (0, 0, float("inf")), (0, 0, -1)]
)
def test_what_is_no_place_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(CairnError, match=r"place|distance"):
        Near(*wrong)
