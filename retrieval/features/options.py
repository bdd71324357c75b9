"""How a photo becomes features: options alone, and the fingerprint of what is made with them."""

from dataclasses import asdict, dataclass, field

from index.arrays import fingerprint
from retrieval.descriptors.contract import Descriptor
from retrieval.regions.options import RegionOptions


@dataclass(frozen=True)
class FeatureOptions:
    """How a photo becomes features."""

    regions: RegionOptions = field(default_factory=RegionOptions)  # detector and its thresholds
    measurement_scale: float | None = None  # measurement region over detected region; None: detector and descriptor say
    upright: bool = True  # keep "down" down; False: turn each patch to its dominant orientation


def features_fingerprint(descriptor: Descriptor, options: FeatureOptions) -> str:
    """Fingerprint of descriptor and options: features compare only with features of the same."""
    told = asdict(options)
    if not options.regions.max_features:  # collections that are older than this option keep their fingerprint
        del told["regions"]["max_features"]
    return fingerprint({}, {"descriptor": descriptor.fingerprint, "features": told})
