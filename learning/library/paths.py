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


def is_path(given: object) -> bool:
    """Return whether a value is one path."""
    return isinstance(given, str | os.PathLike)


def as_path(given: Any, name: str = "This") -> Path:
    """Convert a value to a path; a collection stands for its folder. Raises CairnError with `name` for anything
    else.
    """
    given = getattr(given, "folder", given)
    if not is_path(given):
        raise CairnError(f"{name} must be a path, not {type(given).__name__}.")
    return Path(given)


def as_paths(given: Any, name: str) -> list[Path]:
    """Convert one path or an iterable of paths to a list; raises CairnError if it is empty."""
    if is_path(given) or hasattr(given, "folder"):
        return [as_path(given, name)]
    if not isinstance(given, Iterable):
        raise CairnError(f"{name} must be a path or a list of paths, not {type(given).__name__}.")
    found = [as_path(one, f"Each of {name}") for one in given]
    if not found:
        raise CairnError(f"{name} must be one path at least.")
    return found
