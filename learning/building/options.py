"""Options of making labelled patches."""

import math
from dataclasses import dataclass
from typing import Annotated

from index.errors import CairnError
from index.options.declaration import Option, option_of
from index.options.panels import OUTPUT, REGIONS
from index.text import one_of
from retrieval.collection.options import CollectionOptions
from retrieval.regions.detectors.registry import DETECTORS

POINTS = ("sift", "harris")
"""Detectors of points with a size and an orientation; all others detect regions."""


@dataclass(frozen=True)
class DetectionOptions:
    """Options of detecting, and of cutting patches."""

    detector: Annotated[
        str,
        Option(f"Of sequences: sift (OpenCV's keypoints), {one_of(['harris', *DETECTORS])}.", REGIONS, metavar="NAME"),
    ] = "sift"
    measurement_scale: Annotated[float | None, option_of(CollectionOptions, "measurement_scale")] = None
    upright: Annotated[
        bool,
        Option(
            "Keep 'down' down in patches of regions, or turn them as keypoints.",
            REGIONS,
            flags=("--upright/--rotated",),
        ),
    ] = False
    min_side: Annotated[
        float, Option("Of sequences: leave out patches with a smaller side, pixels of the photo.", REGIONS, least=0)
    ] = 0.0
    max_detections: Annotated[
        int, Option("Of sequences: detections a photo, the strongest; 0: no limit.", REGIONS, least=0)
    ] = 8000

    def __post_init__(self) -> None:
        if self.detector not in POINTS:
            if self.detector not in DETECTORS:
                raise CairnError(
                    f"There is no detector {self.detector!r}; choose one of {', '.join([*POINTS, *DETECTORS])}."
                )
        elif self.measurement_scale is not None or self.upright:
            raise CairnError(
                "Keypoints and corners have a size and an orientation of their own: take {--measurement-scale} and "
                "{--upright} away, or choose {--detector} dog-affine."
            )
        if self.measurement_scale is not None and not 0 < self.measurement_scale < math.inf:
            raise CairnError(f"The measurement scale must be a positive number, not {self.measurement_scale}.")


@dataclass(frozen=True)
class MatchRule:
    """Tolerances of a match. Beyond twice any of them is a non-match, between is ambiguous (Brown11, section II)."""

    pixels: float = 5.0  # distance of the centres
    octaves: float = 0.25  # ratio of the scales
    radians: float = math.pi / 8  # difference of the orientations
    # Ours: for the smallest patches of small photos (13 pixels), most matches at 5 pixels are by chance.
    max_shift: Annotated[
        float,
        Option("Of sequences: largest distance of a match over the smaller patch's side; 0: any.", REGIONS, least=0),
    ] = 0.2

    def __post_init__(self) -> None:
        if not (self.pixels > 0 and self.octaves > 0 and self.radians > 0 and self.max_shift >= 0):
            raise CairnError("What a match allows (pixels, octaves, radians) must be above 0, and its shift not below.")


@dataclass(frozen=True)
class SplitOptions:
    """Number of pairs of each split, half of them matches; 0: it is not written, and its points go to the others."""

    train: Annotated[int, Option("Pairs to train on; 0: none.", OUTPUT, least=0)] = 20_000
    validation: Annotated[int, Option("Pairs to validate on; 0: none.", OUTPUT, least=0)] = 5_000
    test: Annotated[int, Option("Pairs to test on; 0: none.", OUTPUT, least=0)] = 10_000
    seed: Annotated[int, option_of(CollectionOptions, "seed")] = 0

    def __post_init__(self) -> None:
        if min(self.sizes) < 0 or not any(self.sizes):
            raise CairnError("Numbers of pairs cannot be negative, and one at least must be above 0.")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """In the order of `SPLITS`."""
        return self.train, self.validation, self.test
