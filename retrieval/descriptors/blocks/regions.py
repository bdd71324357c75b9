"""S-blocks: arrangements of pooling regions, and the weight of each sample of a patch in each (Brown11, III.C).

Unless stated otherwise, lengths are in samples and positions are from the patch's centre.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.descriptors.blocks.parameters import Parameter, length
from retrieval.descriptors.pooling import region_kernels

GRID = "grid"
"""Beginning of the arrangements that only sample responses, for E-blocks: ``grid-10`` has 10 x 10 of them."""

_LARGEST_GRID = 32


@dataclass(frozen=True)
class _Arrangement:
    """One S-block."""

    regions: int  # N
    parameters: tuple[Parameter, ...]  # for patches of 64 samples
    kernels: Callable[[Mapping[str, float], int], NDArray[np.floating]]


def spatial_parameters(name: str) -> list[Parameter]:
    """Parameters of an S-block."""
    return list(_arrangement(name).parameters)


def spatial_regions(name: str) -> int:
    """Number N of pooling regions of an S-block."""
    return _arrangement(name).regions


def is_spatial(name: str) -> bool:
    """Whether there is an S-block, or a sampling grid, of this name."""
    match = re.fullmatch(rf"{GRID}-([1-9][0-9]?)", name)
    return name in ARRANGEMENTS or (match is not None and 2 <= int(match[1]) <= _LARGEST_GRID)


def is_grid(name: str) -> bool:
    """Whether it is a sampling grid and no S-block."""
    return name.startswith(GRID)


def spatial_kernels(name: str, parameters: Mapping[str, float], size: int) -> NDArray[np.float32]:
    """Non-negative weights (S², N) of samples; columns of Gaussian and log-polar regions and grids sum to one."""
    return _arrangement(name).kernels(parameters, size).astype(np.float32)


def _arrangement(name: str) -> _Arrangement:
    if is_grid(name):
        number = int(name.removeprefix(f"{GRID}-"))
        return _Arrangement(number**2, (), lambda _, size: _means(_bilinear(number, size, size)))
    return ARRANGEMENTS[name]


def _axis(size: int) -> NDArray[np.floating]:
    return np.arange(size) - (size - 1) / 2


def _bilinear(number: int, footprint: float, size: int) -> NDArray[np.float64]:
    """Products (S², number²) of triangles around a square grid of centres, each reaching to the next centres."""
    spacing = footprint / number
    centres = (np.arange(number) - (number - 1) / 2) * spacing
    triangles = np.maximum(0, 1 - np.abs(_axis(size)[:, None] - centres) / spacing)
    return np.asarray(np.einsum("yi,xj->yxij", triangles, triangles).reshape(size**2, number**2))


def _means(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (S², N) whose columns sum to one; a region too small to have any sample has no weight."""
    area: NDArray[np.float64] = weights.sum(axis=0)
    return weights / np.where(area > 1e-9, area, np.inf)


def polar_weights(radii: tuple[float, float, float], segments: int, size: int) -> NDArray[np.float64]:
    """Bilinear weights (S², 1 + 2 segments) in polar coordinates, before they are divided by their areas (S2): the
    region in the middle, those of the middle ring by rising angle, then those of the outer one. Within the outer
    regions' centres a sample's weights sum to one; from there they fall to zero at the outer edge.
    """
    across, down = np.meshgrid(_axis(size), _axis(size))
    radius, angle = np.hypot(across, down).ravel(), np.arctan2(down, across).ravel()
    middle, outer, edge = radii
    knots = np.array([0, middle, outer, edge])
    rings = [np.interp(radius, knots, row, right=0) for row in np.eye(4)[:3]]
    if segments == 1:
        shares = np.ones((size**2, 1))
    else:
        apart = (angle[:, None] * segments / (2 * np.pi) - np.arange(segments)) % segments
        shares = np.maximum(0, 1 - np.minimum(apart, segments - apart))
    return np.concatenate([rings[0][:, None], rings[1][:, None] * shares, rings[2][:, None] * shares], axis=1)


def _log_polar(segments: int) -> _Arrangement:
    def kernels(parameters: Mapping[str, float], size: int) -> NDArray[np.float64]:
        # Differences between radii, so that any values are in order.
        radii = np.cumsum([parameters[name] for name in ("middle", "outer_step", "edge_step")])
        return _means(polar_weights(tuple(radii), segments, size))

    parameters = (length("middle", 8.0), length("outer_step", 10.0), length("edge_step", 12.0))
    return _Arrangement(1 + 2 * segments, parameters, kernels)


def square_orbits(number: int) -> list[NDArray[np.float64]]:
    """Points x, y (G, 2) of a unit grid around 0, in groups that the square's symmetries exchange, inner first."""
    axis = np.arange(number) - (number - 1) / 2
    points = np.array([(x, y) for y in axis for x in axis])
    corners = np.sort(np.abs(points), axis=1)  # the same for all points of a group
    keys = sorted({tuple(corner) for corner in corners}, key=lambda corner: (np.hypot(*corner), corner))
    return [points[(corners == key).all(axis=1)] for key in keys]


def _gaussian_grid(number: int) -> _Arrangement:
    """S3: all centres that the square's symmetries exchange have one distance from the middle, and one width."""
    orbits = square_orbits(number)
    spacing = 48 / number
    far = [float(np.hypot(*orbit[0])) for orbit in orbits]
    parameters = [length(f"distance_{k}", spacing * one) for k, one in enumerate(far) if one > 0]
    parameters += [length(f"width_{k}", 0.4 * spacing) for k in range(len(orbits))]

    def kernels(values: Mapping[str, float], size: int) -> NDArray[np.float32]:
        regions = [
            np.column_stack(
                [
                    orbit * (values[f"distance_{k}"] / one if one > 0 else 0),
                    np.full(len(orbit), values[f"width_{k}"]),
                ]
            )
            for k, (orbit, one) in enumerate(zip(orbits, far, strict=True))
        ]
        return region_kernels(np.concatenate(regions), size)

    return _Arrangement(number**2, tuple(parameters), kernels)


def _gaussian_rings(radii: tuple[float, ...], widths: tuple[float, ...]) -> _Arrangement:
    """S4: a region in the middle and rings of eight around it; one ring is turned against the others (DAISY)."""
    parameters = [length(f"radius_{ring}", radius) for ring, radius in enumerate(radii, 1)]
    parameters += [length(f"width_{ring}", width) for ring, width in enumerate(widths)]
    # Eight regions are symmetric under an eighth of a turn.
    parameters.append(Parameter("phase", np.pi / 8, 0, np.pi / 4, length=False, ratio=False))
    turned = (len(radii) + 1) // 2  # the inner one of two rings, the middle one of three

    def kernels(values: Mapping[str, float], size: int) -> NDArray[np.float32]:
        return region_kernels(ring_regions(values, len(radii), turned), size)

    return _Arrangement(1 + 8 * len(radii), tuple(parameters), kernels)


def ring_regions(values: Mapping[str, float], rings: int, turned: int) -> NDArray[np.float64]:
    """Regions (1 + 8 rings, 3) of S4: x, y and standard deviation; the ring of number `turned` has the phase."""
    angles = 2 * np.pi * np.arange(8) / 8
    regions = [np.array([[0, 0, values["width_0"]]])]
    for ring in range(1, rings + 1):
        turn = angles + (values["phase"] if ring == turned else 0)
        radius, width = values[f"radius_{ring}"], values[f"width_{ring}"]
        regions.append(np.column_stack([radius * np.cos(turn), radius * np.sin(turn), np.full(8, width)]))
    return np.concatenate(regions)


ARRANGEMENTS: dict[str, _Arrangement] = {
    "S1-16": _Arrangement(
        16, (length("footprint", 48.0, 20.0, 80.0),), lambda values, size: _bilinear(4, values["footprint"], size)
    ),
    "S2-3": _log_polar(1),
    "S2-9": _log_polar(4),
    "S2-17": _log_polar(8),
    "S3-9": _gaussian_grid(3),
    "S3-16": _gaussian_grid(4),
    "S3-25": _gaussian_grid(5),
    "S4-17": _gaussian_rings((9.0, 20.0), (3.0, 4.5, 7.0)),
    "S4-25": _gaussian_rings((6.0, 13.0, 22.0), (2.5, 3.0, 4.5, 6.5)),
}
"""S-blocks by name: their family and the number of their regions."""
