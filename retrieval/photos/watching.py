"""Watch folders for added, changed and removed photos, to keep a collection up to date."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WatchOptions:
    """How folders are watched."""

    every: float = 600.0  # seconds after which to yield in any case: not every drive reports changes
    settle: float = 2.0  # seconds for which changes are gathered: photos are copied many at a time


def changes(paths: Sequence[Path], ignore: Path, options: WatchOptions | None = None) -> Iterator[None]:
    """Wait for changes below some paths, ignoring a folder (the collection); yield at once, and then after every
    change.

    Changes that happen while the caller is at work are not lost: they make it yield once more.
    """
    from watchfiles import Change, watch

    options = options or WatchOptions()
    inside = os.path.join(os.path.realpath(ignore), "")  # noqa: PTH118 (ends in a slash)

    def counts(_: Change, path: str) -> bool:
        hidden = Path(path).name.startswith(".")
        return not hidden and not os.path.join(os.path.realpath(path), "").startswith(inside)  # noqa: PTH118

    looked = -float("inf")
    settle = int(1000 * options.settle)
    # `watch` also yields without changes, the first time so soon that no change can be missed before the first run.
    for found in watch(*paths, watch_filter=counts, debounce=settle, rust_timeout=1000, yield_on_timeout=True):
        if found or time.monotonic() - looked >= options.every:
            yield
            looked = time.monotonic()
