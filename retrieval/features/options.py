"""How a photo becomes features: options alone, and the fingerprint of what is made with them."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated

from index.options.declaration import Option, check
from index.options.panels import REGIONS
from retrieval.regions.options import RegionOptions

if TYPE_CHECKING:
    from retrieval.descriptors.contract import Descriptor


@dataclass(frozen=True)
class FeatureOptions:
    """How a photo becomes features."""

    regions: RegionOptions = field(default_factory=RegionOptions)  # detector and its thresholds
    measurement_scale: Annotated[  # None: detector and descriptor say
        float | None,
        Option("Measurement region over detected region (default: 12.5 for dog-affine, √3 else).", REGIONS),
    ] = None
    upright: Annotated[
        bool,
        Option(
            "Keep 'down' down, or turn patches to their dominant orientation.", REGIONS, flags=("--upright/--rotated",)
        ),
    ] = True

    def __post_init__(self) -> None:
        check(self)


def features_fingerprint(descriptor: "Descriptor", options: FeatureOptions) -> str:
    """Fingerprint of descriptor and options: features compare only with features of the same."""
    from index.arrays import fingerprint

    told = asdict(options)
    if not options.regions.max_features:  # collections that are older than this option keep their fingerprint
        del told["regions"]["max_features"]
    return fingerprint({}, {"descriptor": descriptor.fingerprint, "features": told})
