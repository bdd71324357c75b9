"""Tokens, stored as hashes, and files that only their owner may read."""

import contextlib
import hashlib
import os
import secrets
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from index.arrays import save_bytes
from index.errors import CairnError

TOKEN = "cairn_"
"""Begins every token, so that one in a public place is recognised."""


def new_token() -> tuple[str, str]:
    """Draw a token; return it and its stored hash."""
    token = TOKEN + secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> str:
    """The stored hash of a token."""
    return f"sha256${hashlib.sha256(token.encode()).hexdigest()}"


def chosen_day(days: int | None, expires: str | None) -> date | None:
    """The last day (UTC) on which something is valid: after some days, or one that is named; None without either."""
    if days is not None and expires is not None:
        raise CairnError("Give {--expires} or {--days}, and not both.")
    if days is not None:
        return datetime.now(UTC).date() + timedelta(days)
    try:
        return None if expires is None else date.fromisoformat(expires)
    except ValueError:
        raise CairnError("{expires} is not a day such as 2027-01-31.", expires=repr(expires)) from None


def write_private(path: Path, contents: bytes) -> None:
    """Write a file readable only by its owner; an existing file keeps its owner, if this process may set it."""
    owner = None
    with contextlib.suppress(FileNotFoundError):
        owner = path.stat()
    save_bytes(path, contents, mode=0o600)
    if owner is not None and os.name == "posix" and owner.st_uid != os.geteuid():
        with contextlib.suppress(OSError):  # only root may
            os.chown(path, owner.st_uid, owner.st_gid)


def stamp_of(path: Path) -> tuple[int, ...] | None:
    """A value that changes with a file's content, owner or permissions; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size, status.st_mode
