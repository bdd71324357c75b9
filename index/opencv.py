"""Check of the OpenCV installation: its packages overwrite each other's files, and a mixture of two does not work."""

import re
from importlib.util import find_spec
from pathlib import Path

from index.errors import CairnError

PACKAGE = "opencv-contrib-python-headless"
"""The package that Cairn needs."""

_INSTALLED = re.compile(r"(opencv_(?:contrib_)?python(?:_headless)?)-([0-9.]+)\.dist-info")


def refuse_mixture(folder: Path | None = None) -> None:
    """Raise CairnError if OpenCV is installed in two packages of different versions, without importing it."""
    if folder is None:
        spec = find_spec("cv2")
        if spec is None or spec.origin is None:
            return
        folder = Path(spec.origin).parents[1]
    there = {}
    for path in folder.glob("opencv_*.dist-info"):
        if matched := _INSTALLED.fullmatch(path.name):
            there[matched[1].replace("_", "-")] = matched[2]
    own = there.pop(PACKAGE, None)
    others = sorted(name for name, version in there.items() if own is not None and version != own)
    if others:
        remedy = f"pip uninstall {' '.join(others)}, then pip install --force-reinstall --no-deps {PACKAGE}=={own}"
        raise CairnError(
            f"{others[0]} {there[others[0]]} is installed over {PACKAGE} {own}, which Cairn needs, and neither works: "
            f"run {remedy}."
        )
