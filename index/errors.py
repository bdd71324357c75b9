"""The exception for errors that a user can cause, and for refusals of the system."""

import errno
from pathlib import Path
from typing import Any

from index.messages import Message

# Errors of the system or the disk, not of a file's contents.
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.EMFILE)

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of the system for a disk, or a share of it, that is full."""


class CairnError(Exception):
    """A request that cannot be met, or a file that cannot be used.

    Its message is one plain sentence: what is wrong, and what to do about it. The command line prints that sentence
    and exits with 2; it never shows a traceback for it.

    Parameters
    ----------
    text : str or Message
        The sentence, which may have placeholders: see `index.messages`.
    **values
        Values of the placeholders.
    """

    _kind = ""  # kind of the error, such as "missing"; a server has a status for each

    def __init__(self, text: str | Message = "", **values: object) -> None:
        self.message = Message.of(text, **values)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the state, whatever the arguments of the class: worker processes send their errors."""
        return _restored, (type(self), self.message, vars(self))


def kind_of(error: CairnError) -> str:
    """Kind of an error, such as "missing"; empty if its class has none."""
    return error._kind


def _restored(kind: type[CairnError], message: Message, state: dict[str, Any]) -> CairnError:
    error = kind.__new__(kind, message)
    vars(error).update(state)
    return error


class Damaged(CairnError):
    """A file differs from what was written, or is missing."""


class Unreachable(CairnError):
    """Another machine does not answer now."""


class Unreadable(CairnError):
    """The system or the disk refuses to read a file. It is not damaged and needs no repair."""


class DatabaseError(CairnError):
    """The database itself fails; `cause` is its message."""

    def __init__(self, text: str | Message, cause: str = "", **values: object) -> None:
        super().__init__(text, **values)
        self.cause = cause


class LaterVersion(CairnError):
    """A file written by a later version of Cairn, which is no damage either."""


def refuse_unreadable(path: Path, error: OSError) -> None:
    """Raise `Unreadable` if an error is a refusal of the system or the disk, not if a file is missing or irregular."""
    if error.errno in _REFUSALS:
        raise Unreadable(
            "{path} cannot be read ({reason}): check the disk and its rights, then run the command again.",
            path=path,
            reason=error.strerror,
        ) from error
