"""Extensions of an example package, and its installation for a test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cairn
from index import extensions

PLACE = "tests.support.toy_extensions:Means"


class Means:
    """A descriptor: means of a patch's parts, four by four, at unit length."""

    name, dim, patch_size, extent, bytes = "means", 16, 16, 1.0, 64

    def __init__(self, mark: str = "means-1") -> None:
        self.fingerprint = mark

    def describe(self, patches: np.ndarray) -> np.ndarray:
        if patches.ndim != 3 or patches.shape[1:] != (16, 16):
            raise ValueError(f"patches must have the shape (N, 16, 16), not {patches.shape}")
        rows = patches.astype(np.float32).reshape(-1, 4, 4, 4, 4).mean(axis=(2, 4)).reshape(-1, 16)
        rows -= rows.mean(axis=1, keepdims=True)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6)


class Lines:
    """A protocol: a file whose lines are a query, its photo, and its positives."""

    def recognises(self, path: Path) -> bool:
        return path.suffix == ".lines"

    def read(self, path: Path) -> dict[str, dict[str, Any]]:
        rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
        return {query: {"photo": photo, "good": good} for query, photo, *good in rows}


def install(
    monkeypatch: pytest.MonkeyPatch, folder: Path, entries: dict[str, dict[str, str]], version: str = "1.2"
) -> None:
    """Install a package that declares entry points, by group and name; `uninstall` removes it."""
    about = folder / f"toy_extensions-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toy-extensions\nVersion: {version}\n")
    groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in some.items()) for group, some in entries.items())
    (about / "entry_points.txt").write_text("".join(groups))
    monkeypatch.syspath_prepend(str(folder))
    forget(monkeypatch)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a test with the packages installed now, and nothing registered."""
    monkeypatch.setattr(extensions, "_registered", {kind: {} for kind in extensions.KINDS})
    extensions._installed.cache_clear()
    extensions._loaded.cache_clear()


@pytest.fixture(autouse=True)
def no_extensions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing installed or registered by other tests, for all tests of a module that imports this."""
    forget(monkeypatch)
    yield
    monkeypatch.undo()
    extensions._installed.cache_clear()
    extensions._loaded.cache_clear()


class Nearest:
    """A verifier: nearest descriptors, and Cairn's geometry. A matching network can be plugged in the same way."""

    needs_descriptors = True

    def verify(self, query: Any, photo: Any) -> Any:
        matches = cairn.nearest_matches(query.descriptors, photo.descriptors)
        found = cairn.verify(query.regions, photo.regions, matches, query.shape, photo.shape, hypotheses="similarity")
        return found if found.verified else None
