"""Names read from a file or a database: each names one file or folder, never a path."""

import os
import re
from collections.abc import Container
from pathlib import Path

CACHE_VARIABLE = "CAIRN_CACHE"
"""Environment variable of the cache folder: compiled code, and copies of files of a store."""

# No separator of any system, no control character, and no drive or stream of Windows.
_PLAIN = re.compile(r'[^\x00-\x1f\x7f/\\:*?"<>|]{1,255}')


def is_plain_name(name: object) -> bool:
    """Whether a value is a plain name of one file or folder, not a path.

    >>> is_plain_name("000001"), is_plain_name(".."), is_plain_name("a/b"), is_plain_name(1)
    (True, False, False, False)
    """
    if not isinstance(name, str) or not _PLAIN.fullmatch(name) or not name.strip(". "):
        return False
    try:
        return len(name.encode()) <= 255
    except UnicodeEncodeError:  # lone surrogate
        return False


def is_plain_path(path: object) -> bool:
    """Whether a value is a relative path of plain names separated by ``/``, so that it cannot leave its folder.

    >>> is_plain_path("vocabulary/meta.json"), is_plain_path("/etc/passwd"), is_plain_path("a/../b")
    (True, False, False)
    """
    return isinstance(path, str) and all(map(is_plain_name, path.split("/")))


def find_link_out(folder: Path, shallow: Container[str] = ()) -> Path | None:
    """Find a link below a folder that leads out of it, or None; folders in `shallow` are checked, but not entered."""
    root = folder.resolve()
    folders = [(folder, "")]
    while folders:
        where, name = folders.pop()
        try:
            entries = os.scandir(where)
        except OSError:
            continue  # no access, so nothing can be read or written there either
        with entries:
            for entry in entries:
                if entry.is_symlink():
                    if not _leads_into(Path(entry.path), root):
                        return Path(entry.path)
                elif name.rstrip("/") not in shallow and entry.is_dir(follow_symlinks=False):
                    folders.append((Path(entry.path), f"{name}{entry.name}/"))
    return None


def _leads_into(link: Path, root: Path) -> bool:
    try:
        return link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a loop of links leads nowhere
        return True
