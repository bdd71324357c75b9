"""The detectors by name."""

from pkgutil import resolve_name
from typing import TYPE_CHECKING

from index import extensions
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
    """Look a detector up by name, or an extension also by its place; raises CairnError if it is unknown."""
    if name.startswith(FOREIGN):
        raise CairnError(
            "The keypoints of this collection are another program's, and Cairn cannot detect such: take a collection "
            "of Cairn's own features."
        )
    extension = extensions.find("detector", name) if name not in DETECTORS else None
    if name not in DETECTORS and extension is None:
        extensions.refuse_missing("detector", name)
        known = ", ".join([*DETECTORS, *(one.name for one in extensions.extensions("detector"))])
        raise CairnError("There is no detector {name}; choose one of {known}.", name=repr(name), known=known)
    detector: Detector = extension.load() if extension is not None else resolve_name(DETECTORS[name])
    return detector
