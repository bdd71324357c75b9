"""Roles of users."""

import enum


class Role(enum.StrEnum):
    """What a user may do."""

    READ = "read"  # look, search, take away
    WRITE = "write"  # change what is known of photos, and have work done
