"""Versions of packages that results depend on: workers of a cluster must have those of the calling process."""

import importlib.metadata
import platform
from collections.abc import Callable, Mapping
from functools import cache, partial

from index.errors import CairnError

PYTHON = "python"
PACKAGES = (
    "cairn-search",
    "numpy",
    "scipy",
    "opencv-contrib-python-headless",
    "faiss-cpu",
    "scikit-image",
    "pillow",
    "dask",
    "distributed",
)
"""Packages that affect results or serialisation."""


class VersionsDiffer(CairnError):
    """A worker has another version of a package than the calling process."""


@cache
def own_versions() -> dict[str, str]:
    """Versions in this process by package; "" if not installed."""
    versions = {PYTHON: platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = ""
    return versions


def version_of(package: str) -> Callable[[], str]:
    """Return a function that needs only the standard library and returns a version where it is called."""
    return platform.python_version if package == PYTHON else partial(importlib.metadata.version, package)


def compare_versions(own: Mapping[str, str], versions: Mapping[str, str], where: str) -> None:
    """Raise VersionsDiffer, naming the first package that has another version on a worker than here."""
    for package, version in own.items():
        there = versions.get(package, "")
        if there == version or (package == PYTHON and _minor(there) == _minor(version)):
            continue
        if not there:
            raise VersionsDiffer(
                "The worker {worker} has no {package}: install {package} {version} there, as here.",
                worker=where,
                package=package,
                version=version,
            )
        raise VersionsDiffer(
            "The worker {worker} has {package} {there}, and this command {version}: install the same version on all "
            "machines.",
            worker=where,
            package=package,
            there=there,
            version=version,
        )


def _minor(version: str) -> list[str]:
    """The part of Python's version that decides how objects are pickled."""
    return version.split(".")[:2]
