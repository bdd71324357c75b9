"""Options of feature extraction, and the fingerprint of features made with them."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated

from index.errors import CairnError
from index.options.declaration import Option, check
from index.options.panels import FEATURES, REGIONS
from index.text import shown
from retrieval.regions.options import RegionOptions

if TYPE_CHECKING:
    from retrieval.descriptors.contract import Descriptor


TEXT = "text"
"""Kind of what `FeatureOptions.ignore` leaves out."""


def _ignored(name: str) -> str:
    if name != TEXT:
        raise CairnError(f"ignore is {TEXT}, and not {shown(name)}.")
    return name


@dataclass(frozen=True)
class FeatureOptions:
    """Options of feature extraction."""

    regions: RegionOptions = field(default_factory=RegionOptions)  # detector and its thresholds
    measurement_scale: Annotated[  # None: detector and descriptor say
        float | None,
        Option(
            "Size of the measurement region relative to the detected region (default: 12.5 for dog-affine, √3 for "
            "others).",
            REGIONS,
        ),
    ] = None
    upright: Annotated[
        bool,
        Option(
            "Assume that photos are upright, or turn each patch to its dominant orientation.",
            REGIONS,
            flags=("--upright/--rotated",),
        ),
    ] = True
    ignore: Annotated[
        str | None,
        Option(
            "Ignore this in photos and queries: text, which leaves out features in printed text, so that illustrations "
            "match and letterpress does not. See docs/how-to/books.md.",
            REGIONS,
            metavar="text",
            names=(TEXT,),
            parse=_ignored,
        ),
    ] = None

    extractor: Annotated[  # module:object of the extension, where a collection has one
        str | None,
        Option(
            "Name of an extractor from an installed package, which computes the keypoints and descriptors of new "
            "photos and queries. See docs/how-to/extensions.md.",
            FEATURES,
            name="features_from",
            metavar="NAME",
            extends="extractor",
        ),
    ] = None
    extractor_fingerprint: str | None = None  # identifies the features that it computes

    def __post_init__(self) -> None:
        check(self)


def features_fingerprint(descriptor: "Descriptor", options: FeatureOptions) -> str:
    """Fingerprint of descriptor and options: features compare only with features of the same."""
    from index.arrays import fingerprint

    record = asdict(options)
    del record["extractor"]  # its import path does not matter
    if options.extractor_fingerprint is None:
        del record["extractor_fingerprint"]
    if options.ignore is None:
        del record["ignore"]
    if not options.regions.max_features:  # collections older than this option keep their fingerprint
        del record["regions"]["max_features"]
    return fingerprint({}, {"descriptor": descriptor.fingerprint, "features": record})
