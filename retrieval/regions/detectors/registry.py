"""The detectors by name."""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

from index.errors import CairnError

if TYPE_CHECKING:
    from retrieval.regions.detectors.contract import Detector

DETECTORS = {
    "dog-affine": "retrieval.regions.detectors.dog:DETECTOR",
    "hessian-affine": "retrieval.regions.detectors.hessian:DETECTOR",
}
"""Every detector by its name: module:object, imported when it is asked for, so that `cairn --help` needs none."""

FOREIGN = "foreign:"
"""What the option `detector` of a collection begins with whose keypoints another program found."""


def find_detector(name: str) -> "Detector":
    """Look a detector up by name; raises CairnError if the name is unknown."""
    if name.startswith(FOREIGN):
        raise CairnError(
            "The keypoints of this collection are another program's, and Cairn cannot detect such: take a collection "
            "of Cairn's own features."
        )
    if name not in DETECTORS:
        raise CairnError(f"There is no detector {name!r}; choose one of {', '.join(DETECTORS)}.")
    detector: Detector = resolve_name(DETECTORS[name])
    return detector
