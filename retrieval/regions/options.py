"""Options of region detection, which a collection stores."""

from dataclasses import dataclass, field
from typing import Annotated

from index.options.declaration import Option, check
from index.options.panels import REGIONS
from index.text import one_of
from retrieval.regions.detectors.registry import DETECTORS


@dataclass(frozen=True)
class AdaptationOptions:
    """How a region's shape is estimated."""

    iterations: int = 2  # steps at most; 0 leaves regions round
    window: float = 8.0  # half the side of the window in units of the detection scale
    samples: int = 21  # samples along that side
    converged: float = 0.93  # smallest eigenvalue ratio of the second-moment matrix that ends the iteration
    max_anisotropy: float = 5.0  # largest ratio of the ellipse's axes
    keep_unconverged: bool = True  # keep regions that ran out of steps, at their last shape


@dataclass(frozen=True)
class RegionOptions:
    """How regions are detected."""

    detector: Annotated[
        str,
        Option(
            f"Detector of regions: {one_of(DETECTORS)}.",
            REGIONS,
            metavar="NAME",
            names=tuple(DETECTORS),
            extends="detector",
        ),
    ] = "dog-affine"
    threshold: float | None = None  # smallest absolute response, grey values 0..255; None: the detector's own
    edge_ratio: float = 10.0  # largest ratio of principal curvatures (Lowe 2004, section 4.1)
    max_regions: int = 8000  # at most this many a photo, the strongest; 0: no limit
    max_features: Annotated[
        int,
        Option(
            "Most features to keep per photo, strong ones spread over it, to save space and time; 0: all.",
            REGIONS,
            metavar="N",
            least=0,
        ),
    ] = 0
    adaptation: AdaptationOptions = field(default_factory=AdaptationOptions)  # iterated second-moment matrix

    def __post_init__(self) -> None:
        check(self)
