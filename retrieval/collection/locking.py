"""The lock of a collection: one process changes it at a time."""

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from index.errors import CairnError
from index.files.names import find_link_out
from index.messages import Message
from retrieval.collection.layout import LINKS_LOCK, LOCK, UPLOADS
from retrieval.photos.listing import CACHE, THUMBNAILS

# Folders with very many files, not searched for links: their contents are written and removed only by hash, or at paths
# without a file.
_MANY = (f"{CACHE}/{THUMBNAILS}", UPLOADS)
_unlocked: set[Path] = set()  # folders for which a warning about missing locks was printed


class CollectionLocked(CairnError):
    """Another process is changing the collection."""


def refuse_links(folder: Path) -> None:
    """Refuse a collection with a link out of its folder, as files elsewhere would be written or removed through it."""
    link = find_link_out(folder, _MANY)
    if link is not None:
        raise CairnError(
            "{link} is a link that leads out of the collection: put what it leads to in its place, or remove the link.",
            link=link,
        )


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from changing the collection in a folder; raises CollectionLocked if one is doing so."""
    refuse_links(folder)
    refusal = Message("Another cairn command is changing {folder}: wait until it has ended.", folder=folder)
    with lock_file(folder / LOCK, refusal):
        yield


@contextmanager
def lock_links(folder: Path) -> Iterator[None]:
    """Keep other processes from finding links in a collection and grouping; raises CollectionLocked if one does so."""
    refusal = Message("Another process is looking for links in {folder}: wait until it has ended.", folder=folder)
    with lock_file(folder / LINKS_LOCK, refusal):
        yield


@contextmanager
def lock_file(path: Path, refusal: str | Message | None = None, *, inherited: bool = False) -> Iterator[None]:
    """Hold the lock of a file, which is created.

    If another process holds it: raise CollectionLocked with the sentence `refusal`, or wait if that is None. An
    `inherited` lock is also held by processes started meanwhile with ``close_fds=False``, until they end.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        # Never follow a link, and never write to the file.
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except FileNotFoundError:
        raise CairnError(
            "The folder {folder} no longer exists: check that its drive is connected.", folder=path.parent
        ) from None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise
        raise _irregular(path) from None
    with open(handle, "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _irregular(path)
        try:
            # The system releases it when the process ends, however it ends.
            fcntl.flock(file, fcntl.LOCK_EX if refusal is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CollectionLocked(refusal or "") from None
        except OSError as error:
            _warn_unlocked(path.parent, error)
        os.set_inheritable(file.fileno(), inherited)
        yield


def _irregular(path: Path) -> CairnError:
    return CairnError("{path} is not a file of its own: remove it, then try again.", path=path)


@contextmanager
def await_lock(path: Path, seconds: float, refusal: str) -> Iterator[None]:
    """Hold the lock of a file, and wait some seconds for it; raises CollectionLocked if others hold it longer."""
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(lock_file(path, refusal))
                break
            except CollectionLocked:
                if time.monotonic() > until:
                    raise
            time.sleep(0.01)
        yield


def _warn_unlocked(folder: Path, error: OSError) -> None:
    """Warn once that a file system has no locks."""
    if folder not in _unlocked:
        _unlocked.add(folder)
        print(
            f"cairn: {folder} cannot be locked ({error.strerror or error}), as on some network drives: let no other "
            "cairn command change it meanwhile.",
            file=sys.stderr,
            flush=True,
        )
