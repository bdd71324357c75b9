"""Reasons of the system for refusing to open a file."""

import errno
import os


def system_reason(error: Exception) -> str:
    """The system's reason for refusing a file, in a few words."""
    number = getattr(error, "errno", None)
    known = {
        errno.ENOENT: "the file does not exist",
        errno.EACCES: "permission to read it is denied",
        errno.EISDIR: "it is a folder, not a photo",
        errno.ELOOP: "its link leads back to itself",
        errno.ENAMETOOLONG: "its name is too long",
    }
    return known.get(number, os.strerror(number).lower()) if number is not None else "its name is not valid"
