"""The one exception for what a user can cause, and what the system refuses."""

import errno
from pathlib import Path
from typing import Any

from index.messages import Message

# Errors of the system or the disk, not of the contents.
_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO, errno.EMFILE)


class CairnError(Exception):
    """A request that cannot be met, or a file that cannot be used.

    Its message is one plain sentence: what is wrong, and what to do about it. The command line prints that sentence
    and exits with 2; it never shows a traceback for it.

    Parameters
    ----------
    text : str or Message
        The sentence, which may have places in it: see `index.messages`.
    **values
        What stands at its places.
    """

    _kind = ""  # which sort it is, such as "missing": a server answers each with a status of its own

    def __init__(self, text: str | Message = "", **values: object) -> None:
        self.message = Message.of(text, **values)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is, whatever the class is made with: worker processes send their errors."""
        return _restored, (type(self), self.message, vars(self))


def kind_of(error: CairnError) -> str:
    """Which sort an error is, such as "missing"; empty where its class says nothing."""
    return error._kind


def _restored(kind: type[CairnError], message: Message, state: dict[str, Any]) -> CairnError:
    error = kind.__new__(kind, message)
    vars(error).update(state)
    return error


class Damaged(CairnError):
    """A file is not what was written, or is missing."""


class Unreachable(CairnError):
    """What is on another machine that does not answer now."""


class Unreadable(CairnError):
    """A file that the system or the disk does not give out: that is no damage, and nothing is to be repaired."""


class DatabaseError(CairnError):
    """The database itself fails; `cause` is what it says of it."""

    def __init__(self, text: str | Message, cause: str = "", **values: object) -> None:
        super().__init__(text, **values)
        self.cause = cause


class LaterVersion(CairnError):
    """A file that a later version of Cairn has written: that is no damage either."""


def refuse_unreadable(path: Path, error: OSError) -> None:
    """Raise `Unreadable` where an error is a refusal of the system or the disk; not where a file is missing or odd."""
    if error.errno in _REFUSALS:
        raise Unreadable(
            f"{path} cannot be read ({error.strerror}): check the disk and its rights, then run the command again."
        ) from error
