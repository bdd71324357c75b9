"""Tokens, of which hashes alone are kept, and files that their owner alone may read."""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from index.arrays import save_bytes

TOKEN = "cairn_"
"""Begins every token, so that one in a public place is recognised."""


def new_token() -> tuple[str, str]:
    """Draw a token; give it, and what is kept of it."""
    token = TOKEN + secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> str:
    """What is kept of a token."""
    return f"sha256${hashlib.sha256(token.encode()).hexdigest()}"


def write_private(path: Path, contents: bytes) -> None:
    """Write a file for its owner alone; whose it was before, theirs it stays, where this process may say so."""
    owner = None
    with contextlib.suppress(FileNotFoundError):
        owner = path.stat()
    save_bytes(path, contents, mode=0o600)
    if owner is not None and os.name == "posix" and owner.st_uid != os.geteuid():
        with contextlib.suppress(OSError):  # only root may
            os.chown(path, owner.st_uid, owner.st_gid)


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """What changes with a file's content, owner or permissions; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size, found.st_mode
