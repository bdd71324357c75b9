"""Path arguments: one or several."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from index.errors import CairnError

AnyPath = str | os.PathLike[str]
"""One path."""
Paths = AnyPath | Iterable[AnyPath]
"""One path or several."""


def is_path(value: object) -> bool:
    """Return whether a value is one path."""
    return isinstance(value, str | os.PathLike)


def as_path(value: Any, name: str = "This") -> Path:
    """Convert a value to a path; a collection stands for its folder. Raises CairnError for anything else."""
    value = getattr(value, "folder", value)
    if not is_path(value):
        raise CairnError(f"{name} must be a path, not {type(value).__name__}.")
    return Path(value)


def as_paths(value: Any, name: str) -> list[Path]:
    """Convert one path or an iterable of paths to a list; raises CairnError if it is empty."""
    if is_path(value) or hasattr(value, "folder"):
        return [as_path(value, name)]
    if not isinstance(value, Iterable):
        raise CairnError(f"{name} must be a path or a list of paths, not {type(value).__name__}.")
    paths = [as_path(one, f"Each of {name}") for one in value]
    if not paths:
        raise CairnError(f"{name} must be one path at least.")
    return paths
