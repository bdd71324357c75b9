"""Places on Earth: distances, and areas near a place. Degrees of WGS 84, on a sphere."""

import math
from dataclasses import dataclass

from index.errors import CairnError

EARTH_RADIUS = 6371.0088
"""Kilometres: the mean radius (IUGG)."""

_SLACK = 1e-7  # degrees, a centimetre: so that rounding does not lose places on the edge


@dataclass(frozen=True)
class Near:
    """All places within some distance of one.

    Parameters
    ----------
    latitude : float
        Degrees north.
    longitude : float
        Degrees east.
    kilometres : float
        Along the sphere.

    Raises
    ------
    CairnError
        There is no such place, or the distance is not more than 0.
    """

    latitude: float
    longitude: float
    kilometres: float

    def __post_init__(self) -> None:
        if not (abs(self.latitude) <= 90 and abs(self.longitude) <= 180):
            raise CairnError(
                "{latitude} {longitude} is not a place: give degrees north (-90 to 90) and degrees east (-180 to 180).",
                latitude=f"{self.latitude:g}",
                longitude=f"{self.longitude:g}",
            )
        if not 0 < self.kilometres < math.inf:
            raise CairnError(
                "A distance must be more than 0 kilometres, not {kilometres}.", kilometres=f"{self.kilometres:g}"
            )

    @property
    def latitudes(self) -> tuple[float, float]:
        """From the most southern to the most northern latitude that is near."""
        reach = math.degrees(self.kilometres / EARTH_RADIUS) + _SLACK
        return max(self.latitude - reach, -90.0), min(self.latitude + reach, 90.0)

    @property
    def longitudes(self) -> list[tuple[float, float]]:
        """Ranges of near longitudes, from west to east: two ranges across the date line."""
        angle = self.kilometres / EARTH_RADIUS
        south, north = self.latitudes
        if south <= -90 or north >= 90 or angle >= math.pi / 2:  # a pole is near, and all longitudes with it
            return [(-180.0, 180.0)]
        # The meridians that touch the circle, which they do nearer to the pole than its centre is.
        reach = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(math.radians(self.latitude))))) + _SLACK
        west, east = self.longitude - reach, self.longitude + reach
        if west < -180:
            return [(-180.0, east), (west + 360, 180.0)]
        if east > 180:
            return [(west, 180.0), (-180.0, east - 360)]
        return [(west, east)]


@dataclass(frozen=True)
class Within:
    """All places between two parallels and two meridians, degrees north and east, edges included.

    The date line is never between west and east. Raises CairnError for invalid degrees.
    """

    south: float
    west: float
    north: float
    east: float

    def __post_init__(self) -> None:
        if not (-90 <= self.south <= self.north <= 90 and -180 <= self.west <= self.east <= 180):
            raise CairnError("Give the south, west, north and east of a place in degrees, such as 48.8,2.2,48.9,2.4.")


def great_circle_km(latitude: float, longitude: float, other_latitude: float, other_longitude: float) -> float:
    """Kilometres between two places, along the sphere: the haversine formula.

    >>> round(great_circle_km(48.8584, 2.2945, 51.5007, -0.1246))  # the Eiffel Tower to Big Ben
    341
    """
    here, there = math.radians(latitude), math.radians(other_latitude)
    across = math.radians(other_longitude - longitude)
    haversine = math.sin((there - here) / 2) ** 2 + math.cos(here) * math.cos(there) * math.sin(across / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, haversine)))
