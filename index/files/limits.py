"""The limit of open files of this process: a memory-mapped array keeps its file open."""

import contextlib

MANY_FILES = 8_192
"""Enough for hundreds of segments; some systems allow no more than 10,240 (macOS), and 256 to 1,024 by default."""


def allow_files(wanted: int = MANY_FILES) -> int | None:
    """Raise the limit of open files as far as the system allows; return the new limit, None if there is no limit."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < allowed:
        with contextlib.suppress(ValueError, OSError):  # the system has a lower limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
