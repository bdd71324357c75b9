#!/usr/bin/env python
"""Make the outline of land and borders for the map of photos.

The file is Natural Earth's countries (public domain, 1:50 million) as TopoJSON, from the package world-atlas of the npm
registry, version 2.0.2: `npm pack world-atlas`. The output is an eighth as large: delta-coded coordinates in fiftieths
of a degree; lines simplified (Douglas and Peucker, 1973); small islands left out.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

OUT = Path(__file__).resolve().parents[2] / "retrieval" / "web" / "static" / "world.json"
SOURCE = "Natural Earth 1:50m, simplified; public domain (naturalearthdata.com)"
SCALE = 50  # steps per degree: two kilometres at the equator, a pixel at the largest zoom
TOLERANCE = 0.1  # largest deviation of a simplified line, in degrees
SMALLEST = 0.05  # least area of an island, in square degrees
POLE = -89.0  # limit of the map

Line = NDArray[np.float64]
"""Longitudes and latitudes (N, 2), degrees."""


def read(topology: dict[str, Any]) -> tuple[list[Line], list[Line]]:
    """Read coasts and borders, the arcs that two countries share, from a topology of countries."""
    scale, shift = (np.array(topology["transform"][name]) for name in ("scale", "translate"))
    arcs = [np.cumsum(np.array(arc), axis=0) * scale + shift for arc in topology["arcs"]]
    rings = [ring for one in topology["objects"]["countries"]["geometries"] for ring in _rings(one)]
    used = Counter(arc if arc >= 0 else ~arc for ring in rings for arc in ring)
    borders = [arcs[arc] for arc, times in used.items() if times > 1]
    coasts = [arc for ring in rings for arc in ring if used[arc if arc >= 0 else ~arc] == 1]
    pieces = [arcs[arc] if arc >= 0 else arcs[~arc][::-1] for arc in coasts]
    return list(join(pieces)), borders


def _rings(geometry: dict[str, Any]) -> Iterator[list[int]]:
    """The rings of a country, each as its arcs; negative ones are traversed backwards."""
    polygons = {"Polygon": [geometry.get("arcs", [])], "MultiPolygon": geometry.get("arcs", [])}
    for polygon in polygons.get(geometry["type"], []):
        yield from polygon


def join(pieces: Iterable[Line]) -> Iterator[Line]:
    """Join pieces with common end points into rings."""
    begins: dict[tuple[float, ...], list[Line]] = {}
    for piece in pieces:
        begins.setdefault(_place(piece[0]), []).append(piece)
    while begins:
        first = next(iter(begins))
        parts, place = [], first
        while place in begins:
            part = begins[place].pop()
            if not begins[place]:
                del begins[place]
            parts.append(part)
            place = _place(part[-1])
            if place == first:
                break
        yield np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


def _place(point: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.round(point, 6).tolist())


def unwrap(line: Line) -> Line:
    """Continue beyond 180 degrees if a line crosses them; lines around a pole are closed there."""
    longitudes = np.rad2deg(np.unwrap(np.deg2rad(line[:, 0])))
    longitudes -= 360 * np.round((longitudes.min() + longitudes.max()) / 720)
    whole = np.column_stack([longitudes, line[:, 1]])
    if abs(longitudes[-1] - longitudes[0]) < 180:
        return whole
    pole = POLE if line[:, 1].mean() < 0 else -POLE
    return np.vstack([whole[abs(whole[:, 1]) < abs(pole)], [[longitudes[-1], pole], [longitudes[0], pole]]])


def simplify(line: Line, closed: bool) -> list[int]:
    """Encode a line as steps from point to point; empty if it is too small to be visible."""
    if closed and cv2.contourArea(line.astype(np.float32)) < SMALLEST:
        return []
    points = cv2.approxPolyDP(line.astype(np.float32)[:, None], TOLERANCE, False)[:, 0]
    steps = np.round(points * SCALE).astype(int)
    differs = np.append(True, (np.diff(steps, axis=0) != 0).any(axis=1))
    steps = steps[differs]
    if closed and len(steps) > 1 and (steps[0] == steps[-1]).all():
        steps = steps[:-1]  # closed when drawn
    if len(steps) < (3 if closed else 2):
        return []
    written: list[int] = np.diff(steps, axis=0, prepend=np.zeros((1, 2), int)).ravel().tolist()
    return written


def outline(topology: dict[str, Any]) -> dict[str, Any]:
    """Convert a topology of countries for the map."""
    rings, borders = read(topology)
    land = [simplify(unwrap(ring), True) for ring in rings]
    lines = [simplify(unwrap(line), False) for line in borders]
    return {
        "source": SOURCE,
        "scale": SCALE,
        "land": [one for one in land if one],
        "borders": [one for one in lines if one],
    }


def main() -> None:
    """Read the command line, and write the outline."""
    parser = argparse.ArgumentParser(description="Make the outline that the map of photos draws.")
    parser.add_argument("countries", type=Path, help="countries-50m.json of world-atlas 2.0.2")
    parser.add_argument("--out", type=Path, default=OUT, help="where it is written")
    arguments = parser.parse_args()
    land = outline(json.loads(arguments.countries.read_text(encoding="utf-8")))
    arguments.out.write_text(json.dumps(land, separators=(",", ":")), encoding="utf-8")
    print(f"{arguments.out}: {len(land['land'])} coasts, {len(land['borders'])} borders")


if __name__ == "__main__":
    main()
